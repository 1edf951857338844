// Sets the theme before the first paint, so that nothing flashes. A module would run too late.
try {
  const theme = localStorage.getItem('tidegate-theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
} catch {
  // Storage is not available: the system's theme applies.
}

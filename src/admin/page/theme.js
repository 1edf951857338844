// Before anything is drawn, so that nothing flashes: not a module, which would wait.
try {
  const theme = localStorage.getItem('tidegate-theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
} catch {
  // Storage is forbidden here: the system's own theme, then.
}

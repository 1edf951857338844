/** Dark, light, or as the system has it. */
import { find, setText } from './dom.js';

const THEMES = /** @type {const} */ (['system', 'dark', 'light']);
const KEY = 'tidegate-theme';

/** @param {() => void} onChange colours are others now */
export function switchTheme(onChange) {
  const button = find(document, '#theme', HTMLButtonElement);
  const { dataset } = document.documentElement;
  /** @type {(typeof THEMES)[number]} */
  let theme = THEMES.find((each) => each === dataset['theme']) ?? 'system';
  const show = () => setText(button, `Theme: ${theme}`);
  show();
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
    if (theme === 'system') delete dataset['theme'];
    else dataset['theme'] = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Storage is forbidden here: the choice lasts as long as the page.
    }
    show();
    onChange();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onChange);
}

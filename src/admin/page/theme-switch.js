/** Switches between the dark theme, the light theme and that of the system. */
import { find, setText } from './dom/dom.js';
import { storeChoice } from './dom/stored-choices.js';

const THEMES = /** @type {const} */ (['system', 'dark', 'light']);
const KEY = 'tidegate-theme';

/** @param {() => void} onChange called when the colours change */
export function initThemeSwitch(onChange) {
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
    storeChoice(KEY, theme);
    show();
    onChange();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onChange);
}

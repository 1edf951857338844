import type { Page } from 'playwright-core';

/** Minimum contrast of normal text: WCAG 2.2, 1.4.3. */
const LEAST = 4.5;
const LEAST_OF_LARGE = 3;

/** Returns the visible texts with too little contrast to their background, and that contrast. */
export function findFaint(page: Page, within = 'body'): Promise<string[]> {
  return page.evaluate(
    ({ within, least, leastOfLarge }) => {
      const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      if (canvas === null) throw new Error('no canvas');
      type Colour = readonly [number, number, number, number];
      // Parses any CSS colour notation.
      const read = (colour: string): Colour => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r = 0, g = 0, b = 0, a = 0] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
      };
      const over = (top: Colour, ground: Colour): Colour => {
        const mix = (index: 0 | 1 | 2): number => top[index] * top[3] + ground[index] * (1 - top[3]);
        return [mix(0), mix(1), mix(2), 1];
      };
      const groundOf = (element: Element | null): Colour => {
        if (element === null) return [255, 255, 255, 1];
        const colour = read(getComputedStyle(element).backgroundColor);
        return colour[3] === 1 ? colour : over(colour, groundOf(element.parentElement));
      };
      const luminance = (colour: Colour): number => {
        const [r = 0, g = 0, b = 0] = colour.slice(0, 3).map((part) => {
          const share = part / 255;
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const faint: string[] = [];
      const root = document.querySelector(within) ?? document.body;
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        const element = node.parentElement;
        const text = node.textContent?.trim() ?? '';
        const isShown = element?.checkVisibility() === true && !element.closest('.spoken, .skip, :disabled');
        if (element === null || text === '' || !isShown) continue;
        const { color, fontSize, fontWeight, opacity } = getComputedStyle(element);
        const ground = groundOf(element);
        const [lighter = 1, darker = 0] = [luminance(over(read(color), ground)), luminance(ground)].toSorted(
          (a, b) => b - a,
        );
        const contrast = (lighter + 0.05) / (darker + 0.05);
        const size = Number.parseFloat(fontSize);
        const isLarge = size >= 24 || (size >= 18.66 && Number(fontWeight) >= 700);
        if (contrast < (isLarge ? leastOfLarge : least) || Number(opacity) < 1) {
          faint.push(`${text.slice(0, 30)}: ${contrast.toFixed(2)}`);
        }
      }
      return faint;
    },
    { within, least: LEAST, leastOfLarge: LEAST_OF_LARGE },
  );
}

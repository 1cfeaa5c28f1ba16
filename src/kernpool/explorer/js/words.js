/** Texts in English and Chinese. `words("bandwidth.of", {name})` fills {name}; an unknown key shows itself. */
import en from "../words/en.json";
import zh from "../words/zh.json";

const WORDS = { en, zh };

/** The language to begin with: what was asked for, else the browser's. */
export function chooseLanguage(asked) {
  if (asked in WORDS) return asked;
  return (navigator.languages || []).some((name) => name.startsWith("zh")) ? "zh" : "en";
}

/** @returns {(key: string, values?: object) => string} with `.language` and `.number(x, digits)` */
export function makeWords(language) {
  const texts = WORDS[language] || WORDS.en;
  const words = (key, values = {}) =>
    (texts[key] ?? WORDS.en[key] ?? key.replace(/^.*\./, "")).replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
  words.language = language;
  words.number = showNumber;
  return words;
}

/** A number with so many significant digits, a true minus sign, and powers of ten only where they are needed. */
export function showNumber(x, digits = 3) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(Number(x.toPrecision(digits)));
  const text =
    size !== 0 && (size < 1e-4 || size >= Math.max(1e7, 10 ** (digits - 1)))
      ? x.toExponential(digits - 1)
      : x.toFixed(Math.min(12, Math.max(0, digits - 1 - (size ? Math.floor(Math.log10(size)) : 0))));
  return text.replace(/-/g, "−");
}

/** How many digits tell values between two ends apart: four, and those that the ends have in common. */
export function digitsOf(low, high) {
  const common = Math.log10(Math.max(-low, high) / (high - low));
  return Number.isFinite(common) ? Math.min(15, 4 + Math.max(0, Math.floor(common))) : 4;
}

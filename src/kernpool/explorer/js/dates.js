/** Dates and durations, which data hold in days: their ticks, texts and cells in Python. */
import { niceTicks } from "./chart.js";
import { showNumber } from "./words.js";

const DAY = 86400000; // milliseconds
const HOURS = [1, 3, 6, 12];
const DAYS = [1, 2, 7, 14];
const MONTHS = [1, 3, 6];

const isDate = (kind) => kind === "date" || kind === "date with a time zone";
const iso = (days) => new Date(Math.round(days * DAY)).toISOString();

/** The text of a value of a numeric column: a date, with the time where the column spans less than ten days. */
export function showPlace(data, a, value, digits = data.digits[a]) {
  if (!isDate(data.times[a]) || !Number.isFinite(value)) return showNumber(value, digits);
  const text = iso(value);
  return data.high[a] - data.low[a] < 10 ? text.slice(0, 16).replace("T", " ") : text.slice(0, 10);
}

/** The name of a column on an axis, with the unit of days where its values are not simply numbers. */
export function axisName(data, a) {
  const units = { duration: " (days)", "date with a time zone": " (UTC)" };
  return data.names[a] + (units[data.times[a]] ?? "");
}

/** Ticks of the axis of a column: pairs of value and text for dates, null for the chart to choose. */
export function ticksOf(data, a, { domain }, width) {
  return isDate(data.times[a]) ? dateTicks(domain[0], domain[1], Math.max(2, Math.floor(width / 90))) : null;
}

/** At most about `count` round dates from `low` to `high`, both in days since 1970-01-01. */
export function dateTicks(low, high, count) {
  const raw = (high - low) / count;
  const hours = HOURS.find((step) => step / 24 >= raw);
  if (hours) return steps(low, high, hours / 24, (day) => iso(day).slice(5, 16).replace("T", " "));
  const days = DAYS.find((step) => step >= raw);
  if (days) return steps(low, high, days, (day) => iso(day).slice(0, 10));
  const months = MONTHS.find((step) => step * 30 >= raw);
  const start = new Date(low * DAY).getUTCFullYear();
  const end = new Date(high * DAY).getUTCFullYear() + 1;
  const at = (year, month) => new Date(Date.UTC(2000, 0)).setUTCFullYear(year, month) / DAY; // of any year
  const found = months
    ? Array.from({ length: ((end - start) * 12) / months }, (_, i) => at(start, i * months))
    : niceTicks(start, end, count).filter(Number.isInteger).map((year) => at(year, 0));
  return found.filter((day) => day >= low && day <= high).map((day) => [day, iso(day).slice(0, months ? 7 : 4)]);
}

function steps(low, high, step, text) {
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, i) => [(first + i) * step, text((first + i) * step)]);
}

/** A value as Python writes it. */
export function pythonCell(kind, value) {
  if (kind === "duration") return `timedelta(days=${value})`;
  if (!isDate(kind)) return String(value);
  return `datetime.fromisoformat("${iso(value).slice(0, 23)}${kind === "date" ? "" : "+00:00"}")`;
}

/** What JSON and YAML write as a decimal number: sign, whole part, fraction, exponent. */
const DECIMAL = /^([-+]?)(\d*)\.?(\d*)(?:e([-+]?\d+))?$/i;
/** The parts of a JSON text: strings, signs, and numbers and words. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;

/** The parts of a JSON text as they are written, without the blanks between them. Pure. */
export function jsonTokens(text: string): string[] {
  return text.match(TOKENS) ?? [];
}

/** The first number of a JSON text that JavaScript would make another one: `12345678901234567890`, `1e999`. Pure. */
export function lostNumber(text: string): string | undefined {
  return jsonTokens(text).find((token) => /^[-\d]/.test(token) && !survives(token, Number(token)));
}

/** Whether what was written is what the number would be stored as. Pure. */
export function survives(written: string, value: number): boolean {
  if (!Number.isFinite(value)) return false;
  if (/^[-+]?0[xo]/i.test(written)) return Number.isSafeInteger(value);
  return decimal(written) === decimal(String(value));
}

/** A number in the one form that it has: its digits without zeros at either end, and where the point is. */
function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  if (kept === '') return '0';
  const scale = Number(exponent) - fraction.length + (digits.length - kept.length);
  return `${sign === '-' ? '-' : ''}${kept}e${scale}`;
}

/** The two functions of Node's util that rhea calls. */

type Constructor = abstract new (...parameters: never[]) => object;

/** Make `derived` inherit the methods of `base`. */
export function inherits(derived: Constructor, base: Constructor): void {
  Object.setPrototypeOf(derived.prototype as object, base.prototype as object);
}

/** Return a value as text, for a log line. */
export function inspect(value: unknown): string {
  return String(value);
}

export default { inherits, inspect };

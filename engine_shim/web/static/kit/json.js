// JSON whose large integers keep their digits: a number of the script holds 2^53 of them, a record may have more. Pure.

const MAYBE_LARGE = /\d{16}/;
const INTEGER = /^-?\d+$/;

/** An integer that a number cannot hold: it counts as the nearest number, and is written with all its digits. */
class LargeInteger extends Number {
  #digits;

  constructor(digits) {
    super(digits);
    this.#digits = digits;
  }

  toString() {
    return this.#digits;
  }

  toJSON() {
    return JSON.rawJSON(this.#digits);
  }
}

/** The value of a JSON text. `JSON.stringify` writes it again as it was. */
export function parseJson(text) {
  return MAYBE_LARGE.test(text) && JSON.rawJSON ? JSON.parse(text, keepDigits) : JSON.parse(text);
}

function keepDigits(key, value, { source }) {
  return typeof value === "number" && !Number.isSafeInteger(value) && INTEGER.test(source) ? new LargeInteger(source) : value;
}

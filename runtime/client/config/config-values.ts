/**
 * Reads the values of a service configuration in protobuf's JSON form: durations such as '1.5s', status codes
 * by name or number, and numbers that may be strings. Errors name the field with its path.
 */
import { Status, type StatusCode } from '../../core/errors/status.ts';

/** A JSON object, with its path for errors. */
export class Fields {
  /** The path of the object, such as `serviceConfig.methodConfig[0]`. */
  readonly path: string;
  readonly #values: Readonly<Record<string, unknown>>;

  /** Throws when `value` is not an object. */
  constructor(path: string, value: unknown) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new TypeError(`${path}: not an object`);
    this.path = path;
    this.#values = value as Record<string, unknown>;
  }

  get names(): string[] {
    return Object.keys(this.#values);
  }

  /** Returns whether the field is given. A field that is `null` is not given. */
  has(name: string): boolean {
    return this.#values[name] !== undefined && this.#values[name] !== null;
  }

  fault(name: string, text: string): TypeError {
    const given = JSON.stringify(this.#values[name]) ?? 'nothing';
    return new TypeError(`${this.path}.${name}: ${given} is not ${text}`);
  }

  object(name: string): Fields | undefined {
    return this.has(name) ? new Fields(`${this.path}.${name}`, this.#values[name]) : undefined;
  }

  list(name: string): unknown[] {
    if (!this.has(name)) return [];
    const value = this.#values[name];
    if (!Array.isArray(value)) throw this.fault(name, 'a list');
    return value;
  }

  objects(name: string): Fields[] {
    return this.list(name).map((each, i) => new Fields(`${this.path}.${name}[${i}]`, each));
  }

  text(name: string): string {
    if (!this.has(name)) return '';
    const value = this.#values[name];
    if (typeof value !== 'string') throw this.fault(name, 'a string');
    return value;
  }

  boolean(name: string): boolean | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#values[name];
    if (typeof value !== 'boolean') throw this.fault(name, 'true or false');
    return value;
  }

  /** Reads a number, which protobuf's JSON may also give as a string. */
  number(name: string, min: number, max: number): number | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#values[name];
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
    if (typeof number !== 'number' || !(number >= min && number <= max))
      throw this.fault(name, `a number from ${min} to ${max}`);
    return number;
  }

  integer(name: string, min: number, max: number): number | undefined {
    const number = this.number(name, min, max);
    if (number !== undefined && !Number.isInteger(number)) throw this.fault(name, 'an integer');
    return number;
  }

  /** Reads a duration such as '0.1s' and returns milliseconds. */
  durationMs(name: string): number | undefined {
    if (!this.has(name)) return undefined;
    const [, seconds] = /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(this.text(name)) ?? [];
    if (seconds === undefined) throw this.fault(name, "a duration in seconds such as '1.5s'");
    return Number(seconds) * 1000;
  }

  /** Reads status codes, which are given by name or number. */
  codes(name: string): StatusCode[] {
    return this.list(name).map((each) => {
      const code =
        typeof each === 'string' ? (Status as Record<string, StatusCode>)[each.toUpperCase()] : each;
      if (code === undefined || code === Status.OK || !(Object.values(Status) as unknown[]).includes(code))
        throw new TypeError(
          `${this.path}.${name}: ${JSON.stringify(each)} is not a status code other than OK`,
        );
      return code as StatusCode;
    });
  }
}

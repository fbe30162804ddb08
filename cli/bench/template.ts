/**
 * A text that differs in each call, by `{{…}}` as in ghz. data.ts uses this file.
 */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { suggestion } from '../../codegen/diagnostic.ts';

export interface CallNumbers {
  readonly call: number;
  readonly worker: number;
}

type Make = (numbers: CallNumbers) => string;
interface Action {
  /** Number of numeric arguments. */
  readonly takes: number;
  readonly make: (...numbers: number[]) => Make;
}

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const bytesMax = 64 * 1024 * 1024;
const plain = (make: Make): Action => ({ takes: 0, make: () => make });
const uuid = plain(() => randomUUID());

const actions: Readonly<Record<string, Action>> = {
  '.RequestNumber': plain(({ call }) => String(call)),
  '.WorkerID': plain(({ worker }) => String(worker)),
  '.Timestamp': plain(() => new Date().toISOString()),
  '.TimestampUnix': plain(() => String(Math.floor(Date.now() / 1000))),
  '.TimestampUnixMilli': plain(() => String(Date.now())),
  '.UUID': uuid,
  newUUID: uuid,
  randomInt: {
    takes: 2,
    make: (from, to) => {
      if (!(from! < to!)) throw new Error('randomInt takes two whole numbers, the first below the second');
      return () => String(randomInt(from!, to!));
    },
  },
  randomString: {
    takes: 2,
    make: (from, to) => {
      if (!(from! >= 0 && from! <= to! && to! <= bytesMax))
        throw new Error(`randomString takes two lengths up to ${bytesMax}, the first not above the second`);
      return () => {
        const bytes = randomBytes(from === to ? from! : randomInt(from!, to! + 1));
        return Array.from(bytes, (byte) => letters[byte % letters.length]).join('');
      };
    },
  },
  randomBytes: {
    takes: 1,
    make: (length) => {
      if (!(length! >= 0 && length! <= bytesMax))
        throw new Error(`randomBytes takes a length up to ${bytesMax}`);
      return () => randomBytes(length!).toString('base64');
    },
  },
};

function actionOf(text: string): Make {
  const [name = '', ...rest] = text.trim().split(/\s+/);
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined;
  const names = Object.keys(actions);
  if (action === undefined) {
    const meant = suggestion(name, names) || `; the actions are ${names.join(', ')}`;
    throw new Error(`{{${text}}}: unknown action ${name || '(empty)'}${meant}`);
  }
  const numbers = rest.map(Number);
  if (numbers.length !== action.takes || !numbers.every(Number.isSafeInteger))
    throw new Error(
      `{{${text}}}: ${name} takes ${action.takes || 'no'} number${action.takes === 1 ? '' : 's'}`,
    );
  return action.make(...numbers);
}

/**
 * Returns a function that makes the text of a call, or undefined when all calls have the same text. Throws an
 * Error for an unknown action.
 */
export function templateOf(text: string): Make | undefined {
  // Split the text at double braces with text between them. JSON may contain double braces, too, but the text
  // between them then has a quoted name.
  const parts = text.split(/\{\{([^{}"]*)\}\}/);
  if (parts.length === 1) return undefined;
  const makes = parts.map((part, i) => (i % 2 === 0 ? () => part : actionOf(part)));
  return (numbers) => makes.map((make) => make(numbers)).join('');
}

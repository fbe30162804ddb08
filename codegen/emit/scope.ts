/**
 * Decides how an output file refers to names. The file's own messages and enums are named directly; those of
 * other files are named through a namespace import (`$1.Order`), and well-known types and primitives through
 * the import of the runtime (`$.Timestamp`). These prefixes cannot clash with a declared name. All code that
 * emits a reference asks the scope, so the scope knows what the file has to import and to declare.
 */
import { posix } from 'node:path';
import type { Enum, Field, File, Message } from '../model/model.ts';
import { quoted as quote } from '../model/quoted.ts';
import { descriptorPath } from '../source/files.ts';
import type { ImportExtension, Target } from './target.ts';

export interface EmitOptions {
  /** TypeScript, or JavaScript with separate declarations. */
  readonly target: Target;
  /** Extension of imports between generated files. */
  readonly importExtension: ImportExtension;
  /** Module with the primitives. */
  readonly codecModule: string;
  /** Whether types of enums include all numbers, or only the declared values. */
  readonly enums: 'open' | 'closed';
}

/**
 * Node treats an import as a URL, and compilers treat it as a path. For file names with these characters Node
 * and compilers find different files.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: URLs lose some of them
const notInImports = /[#?%\\\x00-\x1f\x7f]/g;

/**
 * Returns the output path of a .proto: `kv.rdma.ts`, or `kv.rdma.js` and `kv.rdma.d.ts`. Characters that an
 * import cannot contain become `$` and their code: `a#b.proto` becomes `a$23b.rdma.ts`.
 */
export function outputPath(path: string, extension: 'ts' | 'js' | 'd.ts' = 'ts'): string {
  const name = path
    .replace(/\.proto$/, '')
    .replace(notInImports, (char) => `$${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return `${name}.rdma.${extension}`;
}

/**
 * Returns a relative path as an import specifier. A name that begins with a dot still needs `./`, because
 * otherwise Node would look for a package of that name.
 */
export function specifierOf(path: string): string {
  return /^\.\.?\//.test(path) ? path : `./${path}`;
}

/** The functions of a message's codec. */
export const parts = ['create', 'bound', 'encodeTo', 'decodeFrom'] as const;
export type Part = (typeof parts)[number];

/** Parameter of a function: name (with `?` if optional), type and default. */
export type Parameter = readonly [name: string, type: string, initial?: string];

/**
 * Types of the runtime that have an alias: their type parameters, and the arguments made of these parameters.
 */
const aliases = {
  Case: ['<K extends string, V>', '<K, V>'],
  MessageType: ['<T, Init>', '<T, Init>'],
  Writer: ['', ''],
  Source: ['', ''],
  Unset: ['', ''],
} as const;

function aliasOf(name: keyof typeof aliases): string {
  const [parameters, args] = aliases[name];
  return `type $${name}${parameters} = $.${name}${args};`;
}

/** The parts of the output: one file, or the code and the declarations. */
export type OutputPart = 'code' | 'declaration';

const eager = (name: string): boolean => name === 'generatedType';

export class FileScope {
  readonly file: File;
  readonly #options: EmitOptions;
  readonly #imported = new Map<File, string>();
  readonly #locals = new Set<string>();
  readonly #types = new Set<keyof typeof aliases>();
  readonly #shared = new Map<string, string>();
  /** Import prefixes used so far. */
  readonly #used: Readonly<Record<OutputPart, Set<string>>> = { code: new Set(), declaration: new Set() };
  /** Whether the current encoder uses a variable with the writer's memory. */
  #takesBytes = false;
  #outOfLine: ReadonlySet<Message> | undefined;

  constructor(file: File, options: EmitOptions) {
    this.file = file;
    this.#options = options;
  }

  /** Returns the prefix for names of another file, in a part of the output. */
  #prefix(file: File, part: OutputPart): string {
    if (file === this.file) return '';
    if (file.bundled) return '$.';
    let alias = this.#imported.get(file);
    if (alias === undefined) {
      alias = `$${this.#imported.size + 1}`;
      this.#imported.set(file, alias);
    }
    this.#used[part].add(alias);
    return `${alias}.`;
  }

  /** The part that contains types. */
  get #typesPart(): OutputPart {
    return this.erases ? 'declaration' : 'code';
  }

  /** Returns a reference to the type of a message or enum. */
  type(type: Message | Enum): string {
    return this.#prefix(type.file, this.#typesPart) + type.identifier;
  }

  /** Returns a reference to the type that `encode` takes. */
  init(type: Message): string {
    return this.#prefix(type.file, this.#typesPart) + type.init;
  }

  /** Returns a reference to the const of the type. */
  value(type: Message | Enum): string {
    return this.#prefix(type.file, 'code') + type.identifier;
  }

  /**
   * Returns the code that calls one of a message's functions: directly in the same file, otherwise through
   * the message's const.
   */
  call(type: Message, what: Part): string {
    return type.file === this.file ? `$${what}_${type.identifier}` : `${this.value(type)}.${what}`;
  }

  /** Returns a reference to a type of `rdma-rpc` itself. */
  rpc(type: string): string {
    this.#used[this.#typesPart].add('$rpc');
    return `$rpc.${type}`;
  }

  /** Returns a reference to a function for messages in MessagePack. */
  msgpack(name: string): string {
    this.#used.code.add('$msgpack');
    return `$msgpack.${name}`;
  }

  /** Returns the variable of the current encoder that contains the writer's memory. */
  bytes(): string {
    this.#takesBytes = true;
    return 'bytes';
  }

  /**
   * Returns the result of `emit`, and whether it needs the variable with the writer's memory. Functions for
   * maps are emitted during their message's encoder, and have a variable of their own.
   */
  encoder<T>(emit: () => T): { readonly emitted: T; readonly takesBytes: boolean } {
    const outer = this.#takesBytes;
    this.#takesBytes = false;
    const emitted = emit();
    const takesBytes = this.#takesBytes;
    this.#takesBytes = outer;
    return { emitted, takesBytes };
  }

  /**
   * Returns a reference to a function of the runtime that is called for every field. The reference goes
   * through a const of the file, which V8 treats as constant, whereas V8 checks an imported function on each
   * call.
   */
  local(primitive: string): string {
    this.#locals.add(primitive);
    return `$${primitive}`;
  }

  /**
   * Returns a reference to a type of the runtime that every message names. The reference goes through an
   * alias of the file, so that a compiler resolves one name instead of `$.Writer` three times. Separate
   * declarations of JavaScript have no alias.
   */
  alias(type: keyof typeof aliases): string {
    if (this.erases) return `$.${type}`;
    this.#types.add(type);
    return `$${type}`;
  }

  /**
   * Adds a function that several messages of the file share; `body` is the function without its head. Returns
   * its name. The file contains the function once.
   */
  share(name: string, parameters: readonly Parameter[], result: string, body: string): string {
    const text = (free: string) => `${this.function(free, parameters, result)}\n${body}\n}`;
    let free = `$${name}`;
    // Two types may have the same name, such as `uint32` and a message called `uint32`.
    while ((this.#shared.get(free) ?? text(free)) !== text(free)) free += '$';
    this.#shared.set(free, text(free));
    return free;
  }

  /**
   * Returns whether a message may contain out-of-line values. For messages of other files the answer is yes,
   * because those files may be regenerated independently.
   */
  mayBeOutOfLine(type: Message): boolean {
    this.#outOfLine ??= messagesOutOfLine(this.file);
    return type.file !== this.file || this.#outOfLine.has(type);
  }

  /** Whether types of enums have only the declared values. */
  get closesEnums(): boolean {
    return this.#options.enums === 'closed';
  }

  /** Whether the code is JavaScript, with separate types. */
  get erases(): boolean {
    return this.#options.target === 'js';
  }

  /** Returns text that only TypeScript has, or an empty text when the code is JavaScript. */
  erasable(text: string): string {
    return this.erases ? '' : text;
  }

  /** Returns the code of a value that the compiler cannot know to be present. */
  sure(value: string): string {
    return `${value}${this.erasable('!')}`;
  }

  /**
   * Returns the head of one of a message's functions, with its brace. `result` is the function's return type,
   * unless a compiler finds it without looking at the body.
   */
  headOf(type: Message, what: Part, parameters: readonly Parameter[], result?: string): string {
    return this.function(this.call(type, what), parameters, result);
  }

  /** Returns the head of any function. */
  function(name: string, parameters: readonly Parameter[], result?: string): string {
    const list = parameters.map(([name, kind, initial]) => {
      // The type follows from the default, unless the default is an object literal.
      if (initial !== undefined && !initial.startsWith('{')) return `${name} = ${initial}`;
      const typed = this.erases ? name.replace('?', '') : `${name}: ${kind}`;
      return initial === undefined ? typed : `${typed} = ${initial}`;
    });
    return `function ${name}(${list.join(', ')})${result === undefined ? '' : this.erasable(`: ${result}`)} {`;
  }

  /** Returns a reference to the const with the descriptor of an imported file. */
  descriptor(file: File): string {
    // Most files that import descriptor.proto use nothing else of it, so it is not generated for them.
    return file.path === descriptorPath
      ? `$.${file.descriptor}`
      : this.#prefix(file, 'code') + file.descriptor;
  }

  #modulePath(file: File): string {
    const from = posix.dirname(outputPath(this.file.path));
    const { importExtension } = this.#options;
    const path = posix.relative(from, outputPath(file.path, importExtension === 'js' ? 'js' : 'ts'));
    return specifierOf(importExtension === 'none' ? path.replace(/\.ts$/, '') : path);
  }

  /**
   * Returns the import and export statements of a part of the output. This must be called after everything
   * else has been emitted.
   */
  imports(part: OutputPart): string[] {
    const used = this.#used[part];
    const kind = part === 'declaration' ? 'import type' : 'import';
    const lines: string[] = [`${kind} * as $ from ${quote(this.#options.codecModule)};`];
    if (used.has('$rpc')) lines.push("import type * as $rpc from 'rdma-rpc';");
    if (used.has('$msgpack')) lines.push("import * as $msgpack from 'rdma-rpc/msgpack';");
    for (const [file, alias] of this.#imported)
      if (used.has(alias)) lines.push(`${kind} * as ${alias} from ${quote(this.#modulePath(file))};`);
    for (const file of this.file.publicImports)
      if (!file.bundled) lines.push(`export * from ${quote(this.#modulePath(file))};`);
    return lines;
  }

  /** Returns the aliases that are called while the module is loaded, which must therefore come first. */
  head(): string {
    return this.#aliases(eager);
  }

  #aliases(wanted: (name: string) => boolean): string {
    return [...this.#locals]
      .filter(wanted)
      .sort()
      .map((name) => `const $${name} = $.${name};`)
      .join('\n');
  }

  /**
   * Returns the declarations requested by `alias`, `local` and `share`. This must be called after all
   * messages have been emitted. They are placed at the end, because only functions use them and people need
   * not read them.
   */
  common(): string {
    const types = [...this.#types].sort().map(aliasOf);
    const consts = this.#aliases((name) => !eager(name));
    return [this.erasable(types.join('\n')), consts, ...this.#shared.values()].join('\n\n');
  }
}

/** Returns the messages that have `bytes`, a message of another file, or one of these messages. */
function messagesOutOfLine(file: File): ReadonlySet<Message> {
  const found = new Set<Message>();
  const isOutOfLine = ({ type }: Field): boolean =>
    type.kind === 'scalar'
      ? type.scalar === 'bytes'
      : type.kind === 'message' && (type.file !== file || found.has(type));
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const message of file.messages) if (message.fields.some(isOutOfLine)) found.add(message);
  }
  return found;
}

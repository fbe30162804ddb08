/**
 * How one output file refers to things: messages and enums of its own by name, those of other files through a
 * namespace import (`$1.Order`), well-known types and primitives through the runtime's (`$.Timestamp`). No
 * such prefix can meet a declared name. Whoever emits a reference asks here for it, so the scope knows what
 * the file has to import and to declare.
 */
import { posix } from 'node:path';
import type { Enum, Field, File, Message } from '../model/model.ts';
import { quoted as quote } from '../model/quoted.ts';
import { descriptorPath } from '../source/files.ts';
import type { ImportExtension, Target } from './target.ts';

export interface EmitOptions {
  /** TypeScript, or JavaScript with declarations beside it. */
  readonly target: Target;
  /** Extension of imports between generated files. */
  readonly importExtension: ImportExtension;
  /** Module with the primitives. */
  readonly codecModule: string;
  /** Types of enums: with all numbers, or with their values only. */
  readonly enums: 'open' | 'closed';
}

/**
 * Node reads an import as an URL, compilers read it as a path: of a file with one of these in its name they
 * never find the same.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: URLs lose some of them
const notInImports = /[#?%\\\x00-\x1f\x7f]/g;

/**
 * Of a .proto: `kv.rdma.ts`, or `kv.rdma.js` and `kv.rdma.d.ts`. What an import cannot have is `$` and its
 * code: `a#b.proto` becomes `a$23b.rdma.ts`.
 */
export function outputPath(path: string, extension: 'ts' | 'js' | 'd.ts' = 'ts'): string {
  const name = path
    .replace(/\.proto$/, '')
    .replace(notInImports, (char) => `$${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return `${name}.rdma.${extension}`;
}

/**
 * A relative path as an import has it. A name may begin with a dot, which is not yet `./`: Node would look
 * for a package of that name.
 */
export function specifierOf(path: string): string {
  return /^\.\.?\//.test(path) ? path : `./${path}`;
}

/** The functions of a message. */
export const parts = ['create', 'bound', 'encodeTo', 'decodeFrom'] as const;
export type Part = (typeof parts)[number];

/** Of a function: name (with `?`: may be left out), type, default. */
export type Parameter = readonly [name: string, type: string, initial?: string];

/** Types of the runtime that have an alias, with their parameters, and the arguments from these. */
const aliases = {
  Case: ['<K extends string, V>', '<K, V>'],
  MessageType: ['<T, Init>', '<T, Init>'],
  Sink: ['', ''],
  Source: ['', ''],
  Unset: ['', ''],
} as const;

function aliasOf(name: keyof typeof aliases): string {
  const [parameters, args] = aliases[name];
  return `type $${name}${parameters} = $.${name}${args};`;
}

/** The files that come out: all in one, or declarations apart. */
export type OutputPart = 'code' | 'declaration';

const eager = (name: string): boolean => name === 'generatedType';

export class Scope {
  readonly file: File;
  readonly #options: EmitOptions;
  readonly #imported = new Map<File, string>();
  readonly #locals = new Set<string>();
  readonly #types = new Set<keyof typeof aliases>();
  readonly #shared = new Map<string, string>();
  /** Prefixes that the output has names behind. */
  readonly #used: Readonly<Record<OutputPart, Set<string>>> = { code: new Set(), declaration: new Set() };
  /** The encoder that is being emitted has the sink's memory in a variable. */
  #takesBytes = false;
  #holed: ReadonlySet<Message> | undefined;

  constructor(file: File, options: EmitOptions) {
    this.file = file;
    this.#options = options;
  }

  /** Prefix for names of another file, in a part of the output. */
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

  /** Where types are. */
  get #typesPart(): OutputPart {
    return this.erases ? 'declaration' : 'code';
  }

  /** As a type. */
  type(type: Message | Enum): string {
    return this.#prefix(type.file, this.#typesPart) + type.identifier;
  }

  /** As a type: what `encode` takes. */
  init(type: Message): string {
    return this.#prefix(type.file, this.#typesPart) + type.init;
  }

  /** The const of the type. */
  value(type: Message | Enum): string {
    return this.#prefix(type.file, 'code') + type.identifier;
  }

  /** Calls go straight to the function in the same file, else through the message's const. */
  call(type: Message, what: Part): string {
    return type.file === this.file ? `$${what}_${type.identifier}` : `${this.value(type)}.${what}`;
  }

  /** A type of `rdma-rpc` itself. */
  rpc(type: string): string {
    this.#used[this.#typesPart].add('$rpc');
    return `$rpc.${type}`;
  }

  /** A function for messages in MessagePack. */
  msgpack(name: string): string {
    this.#used.code.add('$msgpack');
    return `$msgpack.${name}`;
  }

  /** The sink's memory, through a variable of the encoder that is being emitted. */
  bytes(): string {
    this.#takesBytes = true;
    return 'bytes';
  }

  /**
   * What `emit` gives, and whether it needs that variable. Functions for maps are emitted while the encoder
   * of their message is, and have one of their own.
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
   * A function of the runtime that is called for every field, through a const of the file: V8 takes that for
   * what it is, but compares what it has imported with what it has seen before, every time.
   */
  local(primitive: string): string {
    this.#locals.add(primitive);
    return `$${primitive}`;
  }

  /**
   * A type of the runtime that every message names, through an alias of the file: a compiler reads a name
   * once where it reads `$.Sink` three times. In declarations, which are apart where the code is JavaScript,
   * there is none.
   */
  alias(type: keyof typeof aliases): string {
    if (this.erases) return `$.${type}`;
    this.#types.add(type);
    return `$${type}`;
  }

  /**
   * A function that the file's messages have in common, with everything in it but its name and head: its
   * name. It stands once in the file.
   */
  share(name: string, parameters: readonly Parameter[], result: string, body: string): string {
    const text = (free: string) => `${this.function(free, parameters, result)}\n${body}\n}`;
    let free = `$${name}`;
    // Two types of a name: `uint32`, and a message that is called so.
    while ((this.#shared.get(free) ?? text(free)) !== text(free)) free += '$';
    this.#shared.set(free, text(free));
    return free;
  }

  /**
   * Whether values in a message may be left out of the memory. Of other files' messages nobody knows: those
   * files may be generated anew without this one.
   */
  mayHaveHoles(type: Message): boolean {
    this.#holed ??= messagesWithHoles(this.file);
    return type.file !== this.file || this.#holed.has(type);
  }

  /** Types of enums have nothing but their values. */
  get closesEnums(): boolean {
    return this.#options.enums === 'closed';
  }

  /** The code is JavaScript; types are apart. */
  get erases(): boolean {
    return this.#options.target === 'js';
  }

  /** What only TypeScript has: nothing where the code is JavaScript. */
  erasable(text: string): string {
    return this.erases ? '' : text;
  }

  /** A value of which the compiler cannot know that it is there. */
  sure(value: string): string {
    return `${value}${this.erasable('!')}`;
  }

  /**
   * The head of one of a message's functions, with its brace. `result` is the type of what it returns, unless
   * a compiler finds that without looking at the rest.
   */
  headOf(type: Message, what: Part, parameters: readonly Parameter[], result?: string): string {
    return this.function(this.call(type, what), parameters, result);
  }

  /** The head of any function. */
  function(name: string, parameters: readonly Parameter[], result?: string): string {
    const list = parameters.map(([name, kind, initial]) => {
      // Its default says what type it has, unless that is a literal with braces.
      if (initial !== undefined && !initial.startsWith('{')) return `${name} = ${initial}`;
      const typed = this.erases ? name.replace('?', '') : `${name}: ${kind}`;
      return initial === undefined ? typed : `${typed} = ${initial}`;
    });
    return `function ${name}(${list.join(', ')})${result === undefined ? '' : this.erasable(`: ${result}`)} {`;
  }

  /** The const with the descriptor of an imported file. */
  descriptor(file: File): string {
    // Most who import it need nothing else of it, which is no reason to generate it.
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
   * Import and export statements of a part of the output, to be asked for when everything else has been
   * emitted.
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

  /** Aliases that are called while the module is loaded, which has to find them there. */
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
   * What `alias`, `local` and `share` have promised, to be asked for when all messages have been emitted. At
   * the end: it is for functions, and nobody reads it.
   */
  common(): string {
    const types = [...this.#types].sort().map(aliasOf);
    const consts = this.#aliases((name) => !eager(name));
    return [this.erasable(types.join('\n')), consts, ...this.#shared.values()].join('\n\n');
  }
}

/** Those with `bytes`, or a message of another file, or one of these. */
function messagesWithHoles(file: File): ReadonlySet<Message> {
  const found = new Set<Message>();
  const holed = ({ type }: Field): boolean =>
    type.kind === 'scalar'
      ? type.scalar === 'bytes'
      : type.kind === 'message' && (type.file !== file || found.has(type));
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const message of file.messages) if (message.fields.some(holed)) found.add(message);
  }
  return found;
}

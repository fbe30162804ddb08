/**
 * The descriptor in each generated file: the declarations of its .proto in protobuf's own form, for
 * reflection and for tools that read schemas. The descriptor is kept as text until it is first used, and
 * bundlers drop it when it is unused.
 */
import { checkRevision } from './generated/revision.ts';

export interface FileDescriptor {
  /** The name that import statements use, for example `kv/v1/kv.proto`. */
  readonly name: string;
  /** The imported files, in the order of the import statements. */
  readonly dependencies: readonly FileDescriptor[];
  /** The encoding of a google.protobuf.FileDescriptorProto, without comments. Do not write to it. */
  readonly bytes: Uint8Array;
}

class LazyFileDescriptor implements FileDescriptor {
  readonly #imported: () => readonly FileDescriptor[];
  readonly #base64: () => string;
  #decoded: Uint8Array | undefined;

  constructor(imported: () => readonly FileDescriptor[], base64: () => string) {
    this.#imported = imported;
    this.#base64 = base64;
  }

  get name(): string {
    const { bytes } = this;
    // Field 1 comes first: the byte 0x0a, then the length of the text as a varint, then the text.
    let at = 1;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      length |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    return new TextDecoder().decode(bytes.subarray(at, at + length));
  }

  get dependencies(): readonly FileDescriptor[] {
    return this.#imported();
  }

  get bytes(): Uint8Array {
    const base64 = this.#base64;
    this.#decoded ??= Uint8Array.from(atob(base64()), (char) => char.charCodeAt(0));
    return this.#decoded;
  }
}

/**
 * Makes the descriptor of one generated file, which calls this before anything else in it. `dependencies` and
 * `base64` are functions, because the text stands further down in the file and must cost nothing when the
 * module is loaded. `made` is the runtime revision for which the file was generated. Throws when the file
 * needs a later revision than this runtime has.
 */
export function fileDescriptor(
  dependencies: () => readonly FileDescriptor[],
  base64: () => string,
  made: number,
): FileDescriptor {
  const descriptor = new LazyFileDescriptor(dependencies, base64);
  checkRevision(made, () => descriptor.name);
  return descriptor;
}

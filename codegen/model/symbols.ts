/**
 * All messages and enums by full name, and protobuf's rule for finding the one that a name means: innermost scope first, only in
 * files that are imported, directly or through `import public`.
 */
import type { Enum, File, Message } from './model.ts';

export type Resolution =
  | { readonly kind: 'found'; readonly type: Message | Enum }
  | { readonly kind: 'not imported'; readonly file: File }
  | { readonly kind: 'unknown' };

export class Symbols {
  private readonly types = new Map<string, Message | Enum>();
  private readonly visible = new Map<File, Set<File>>();

  /** False when the full name is taken by another file; that type is then in `get`. */
  add(type: Message | Enum): boolean {
    if (this.types.has(type.fullName)) return false;
    this.types.set(type.fullName, type);
    return true;
  }

  get(fullName: string): Message | Enum | undefined {
    return this.types.get(fullName);
  }

  /** What `name` means inside `scope` (a full name, or a package) of `file`. */
  resolve(name: string, scope: string, file: File): Resolution {
    let hidden: File | undefined;
    for (const candidate of candidates(name, scope)) {
      const type = this.types.get(candidate);
      if (type === undefined) continue;
      if (this.visibleFrom(file).has(type.file)) return { kind: 'found', type };
      hidden ??= type.file;
    }
    return hidden === undefined ? { kind: 'unknown' } : { kind: 'not imported', file: hidden };
  }

  private visibleFrom(file: File): Set<File> {
    let files = this.visible.get(file);
    if (files === undefined) {
      files = new Set([file]);
      const follow = (from: File, all: boolean): void => {
        for (const entry of from.imports) {
          if (!(all || entry.public) || files?.has(entry.file)) continue;
          files?.add(entry.file);
          follow(entry.file, false);
        }
      };
      follow(file, true);
      this.visible.set(file, files);
    }
    return files;
  }
}

function* candidates(name: string, scope: string): Generator<string> {
  if (name.startsWith('.')) {
    yield name.slice(1);
    return;
  }
  for (let outer = scope; outer !== ''; outer = outer.slice(0, Math.max(0, outer.lastIndexOf('.'))))
    yield `${outer}.${name}`;
  yield name;
}

/**
 * Builds a native test program with one source or header changed. The changed file lies in a folder of its
 * own that comes first in the search path. Only the named sources are compiled again, and their objects
 * replace those of build/native. A bug in a library that the program loads (`library`) changes the library. A
 * copy of the program finds the changed library in its own folder. main.mjs uses this class.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../../scripts/command.mjs';

/** Escapes a path as in a Makefile. */
const words = (text) =>
  (text.match(/(?:[^\s"\\]|\\.|"[^"]*")+/g) ?? []).map((word) => word.replace(/\\(.)/g, '$1'));

/**
 * Returns the message for a bug whose text does not occur exactly once in its files; `times` is the count.
 */
export const unfit = (name, times, files) =>
  `"${name}" no longer fits: its text is ${times} times in ${files}. Look where the code has gone and change test/planted`;

export class Native {
  /**
   * `root` is the project, `build` the directory of its native tests (built with make), and `scratch` a
   * directory for all files that this class creates.
   */
  constructor(root, build, scratch) {
    this.root = root;
    this.build = build;
    this.scratch = scratch;
  }

  #text({ file }) {
    const path = join(this.root, 'native', file);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  /** Returns the reason why a bug no longer fits, or "" when its text occurs once in its file. */
  whyUnfit({ name, file, from }) {
    const times = this.#text({ file }).split(from).length - 1;
    return times === 1 ? '' : unfit(name, times, `native/${file}`);
  }

  /** Returns the changed text of a file. Throws when the bug no longer fits. */
  changed(bug) {
    const why = this.whyUnfit(bug);
    if (why !== '') throw new Error(why);
    return this.#text(bug).replace(bug.from, () => bug.to);
  }

  /** Builds the programs without a bug, with make. */
  async prepare(programs) {
    await run(['cmake', '--build', this.build, '--parallel', '2', '--target', ...programs]);
  }

  /** Resolves to the path of the program that contains the bug. */
  async plant(bug, number) {
    const folder = join(this.scratch, String(number));
    const overlay = join(folder, 'native');
    const changed = join(overlay, bug.file);
    mkdirSync(dirname(changed), { recursive: true });
    writeFileSync(changed, this.changed(bug));
    const target = bug.library ?? bug.program;
    const link = this.#linkCommand(target);
    const objects = [];
    for (const source of bug.sources ?? [bug.file]) {
      const object = join(folder, `${source.replaceAll('/', '-')}.o`);
      const own = link.findIndex((word) => word.endsWith(`native/${source}.o`));
      const flags = this.#flags(own === -1 ? 'rdma_rpc_core' : target);
      const path = source === bug.file ? changed : join(this.root, 'native', source);
      // The last flag turns off optimization, which would take most of the time. A bug may leave a variable
      // or function unused, so that must not be an error.
      await run(['c++', `-I${overlay}`, ...flags, '-O0', '-w', '-c', path, '-o', object]);
      if (own === -1) objects.push(object);
      else link[own] = object;
    }
    const program = join(folder, bug.program);
    const output = link.indexOf('-o');
    link[output + 1] = bug.library === undefined ? program : join(folder, `${bug.library}.so`);
    link.splice(output, 0, ...objects); // The linker then ignores the library's own objects.
    await run(link, { cwd: this.build });
    if (bug.library !== undefined) copyFileSync(join(this.build, bug.program), program);
    return program;
  }

  #flags(target) {
    const text = readFileSync(join(this.build, `CMakeFiles/${target}.dir/flags.make`), 'utf8');
    return [...text.matchAll(/^CXX_(?:DEFINES|INCLUDES|FLAGS) = (.*)$/gm)].flatMap((match) =>
      words(match[1]),
    );
  }

  #linkCommand(target) {
    return words(readFileSync(join(this.build, `CMakeFiles/${target}.dir/link.txt`), 'utf8'));
  }
}

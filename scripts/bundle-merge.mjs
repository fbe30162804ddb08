/**
 * Merges parts of dist/bundle that are always imported together. esbuild creates a part for each set of entry
 * points that share code. With about thirty entry points `rdma-rpc` consisted of 46 parts, and most of its
 * import time was spent on finding, reading and linking files. It is a step of bundle.mjs.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

/**
 * Matches `import { a, b as c } from "./part.js";` and `import "./part.js";`; the text behind `export` has
 * the same form.
 */
const IMPORT = /^import(?: \{([^}]*)\} from)? "\.\/([^"]+)";$/gm;
const EXPORT = /^export \{([^}]*)\};$/gm;

/** Returns the names in such braces, as [name on the left, name on the right]. */
function namesIn(braces = '') {
  return braces
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .map((each) => each.split(' as '))
    .map(([from, to = from]) => [from, to]);
}

const listed = (from, to) => (from === to ? from : `${from} as ${to}`);

/**
 * Rewrites `text` so that it imports from the part `name` everything that it imported from the parts that are
 * merged into `name`.
 */
function pointed(text, name, names) {
  const wanted = [];
  let imports = false;
  const rest = text.replaceAll(new RegExp(`${IMPORT.source}\n?`, 'gm'), (whole, braces, file) => {
    const own = names.get(file);
    if (own === undefined) return whole;
    imports = true;
    wanted.push(...namesIn(braces).map(([from, to]) => `  ${listed(own.get(from), to)}`));
    return '';
  });
  if (!imports) return text;
  // An import for side effects would make an application's bundler warn, and these parts have no side
  // effects.
  if (wanted.length === 0) return rest;
  const statement = `import {\n${wanted.join(',\n')}\n} from "./${name}";\n`;
  return rest.startsWith('#!') ? rest.replace('\n', `\n${statement}`) : `${statement}${rest}`;
}

class Parts {
  #folder;
  texts;

  constructor(folder) {
    this.#folder = folder;
    const files = readdirSync(folder).filter((file) => file.endsWith('.js'));
    this.texts = new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  }

  /** Returns all parts that are loaded with the import of `entry`. */
  closure(entry, seen = new Set()) {
    if (seen.has(entry)) return seen;
    seen.add(entry);
    for (const [, , file] of this.texts.get(entry).matchAll(IMPORT)) this.closure(file, seen);
    return seen;
  }

  /** Merges the parts in `group`, none of which may be an entry point, into one part called `name`. */
  async merge(name, group) {
    /**
     * An export of a part keeps its name in the merged part, unless another part has an export with the same
     * name.
     */
    const names = new Map();
    const taken = new Set();
    for (const file of group) {
      const own = new Map();
      for (const [, braces] of this.texts.get(file).matchAll(EXPORT))
        for (const [, exported] of namesIn(braces)) {
          let unique = exported;
          for (let i = 2; taken.has(unique); i++) unique = `${exported}$${i}`;
          taken.add(unique);
          own.set(exported, unique);
        }
      names.set(file, own);
    }
    const contents = group
      .map((file) => {
        const list = [...names.get(file)].map(([from, to]) => listed(from, to)).join(', ');
        return list === '' ? `import './${file}';` : `export { ${list} } from './${file}';`;
      })
      .join('\n');
    const result = await build({
      stdin: { contents, resolveDir: this.#folder, sourcefile: name },
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      packages: 'external',
      external: ['#*'],
      tsconfigRaw: {},
      logLevel: 'warning',
      plugins: [
        {
          name: 'parts',
          setup(building) {
            building.onResolve({ filter: /^\.\// }, ({ path }) =>
              group.includes(path.slice(2)) ? undefined : { path, external: true },
            );
          },
        },
      ],
    });
    for (const file of group) this.#remove(file);
    for (const [file, text] of this.texts) this.#write(file, pointed(text, name, names));
    this.#write(name, result.outputFiles[0].text);
  }

  #write(file, text) {
    if (this.texts.get(file) === text) return;
    this.texts.set(file, text);
    writeFileSync(join(this.#folder, file), text);
  }

  #remove(file) {
    this.texts.delete(file);
    rmSync(join(this.#folder, file));
  }
}

/**
 * Each of these entry points needs only a part of what `rdma-rpc` imports. They are imported alone or through
 * an application's bundler: generated code and adapters to gRPC should be small, and commands should start
 * fast.
 */
const SHARED_WITH = { codec: 'generated-v1.js', core: 'grpc-server.js', commands: 'cli.js' };

/**
 * Merges chunks that are always loaded together. `entries` are the names of the files that package.json
 * names.
 */
export async function mergeParts(folder, entries) {
  const parts = new Parts(folder);
  const made = [];
  const whatIs = (entry) => {
    const others = [...entries, ...made];
    return [...parts.closure(entry)].filter((file) => !others.includes(file));
  };
  const merge = async (name, group) => {
    if (group.length === 0) return;
    await parts.merge(name, group);
    made.push(name);
  };
  for (const [name, entry] of Object.entries(SHARED_WITH)) {
    const own = new Set(whatIs(entry));
    await merge(
      `${name}-parts.js`,
      whatIs('index.js').filter((file) => own.has(file)),
    );
  }
  await merge('runtime-parts.js', whatIs('index.js'));
}

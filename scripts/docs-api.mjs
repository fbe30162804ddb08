/**
 * Makes the reference of the API: pages that TypeDoc generates from the docstrings, one for each name that an
 * entry point of package.json exports. docs.mjs calls it, and makes the pages part of the site, like those of
 * docs/.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { globSync } from 'tinyglobby';
import { root, run } from './command.mjs';

const WORK = join(root, 'build', 'docs-api');
const ENTRIES = join(WORK, 'entries');
const OUT = join(WORK, 'pages');
/** The folder in which the pages would lie if they were files of the repository. */
const PLACE = 'docs/reference/api';

/**
 * Returns entry points and their sources. The entry point of generated code is left out, because people do
 * not use it directly.
 */
function entryPoints() {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([name, target]) => target['rdma-rpc-source'] !== undefined && !name.startsWith('./generated/'))
    .map(([name, target]) => ({ name: join('rdma-rpc', name), source: target['rdma-rpc-source'] }));
}

const writeJson = (file, value) => writeFileSync(file, JSON.stringify(value, undefined, 2));

/**
 * Writes a file for each entry point, with its name and the same exports, because TypeDoc names a module by
 * its file. Returns these files.
 */
function writeEntries() {
  rmSync(WORK, { recursive: true, force: true });
  const files = entryPoints().map(({ name, source }) => {
    const file = join(ENTRIES, `${name}.ts`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `export * from '${relative(dirname(file), join(root, source))}';\n`);
    return file;
  });
  writeJson(join(ENTRIES, 'tsconfig.json'), {
    extends: relative(ENTRIES, join(root, 'tsconfig.json')),
    compilerOptions: { rootDir: relative(ENTRIES, root), noEmit: true },
    include: ['**/*.ts'],
    exclude: [],
  });
  return files;
}

/**
 * Returns the pages in the form in which docs.mjs has those of docs/: `path` and text. TypeDoc is taken from
 * the node_modules of the folder `site`.
 */
export async function apiPages(site) {
  const modules = join(site, 'node_modules');
  const options = join(WORK, 'typedoc.json');
  const entries = writeEntries();
  writeJson(options, {
    entryPoints: entries,
    basePath: ENTRIES,
    displayBasePath: ENTRIES,
    tsconfig: join(ENTRIES, 'tsconfig.json'),
    plugin: [join(modules, 'typedoc-plugin-markdown', 'dist', 'index.js')],
    name: 'API',
    readme: 'none',
    out: OUT,
    router: 'member',
    entryFileName: 'index',
    hideBreadcrumbs: true,
    hidePageHeader: true,
    excludePrivate: true,
    excludeInternal: true,
    excludeExternals: true,
    disableSources: true,
    // `tsc` checks the types. Types that are described where they are used need no page of their own.
    skipErrorChecking: true,
    validation: { notExported: false, invalidLink: true },
    treatWarningsAsErrors: true,
  });
  await run([process.execPath, join(modules, 'typedoc', 'bin', 'typedoc'), '--options', options]);
  return globSync('**/*.md', { cwd: OUT })
    .sort()
    .map((path) => ({ path: `${PLACE}/${path}`, text: readFileSync(join(OUT, path), 'utf8') }));
}

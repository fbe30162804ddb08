/**
 * Builds the documentation as a site, in build/site: Starlight with offline search, the API by TypeDoc, a
 * `.md` twin of each page, and llms.txt. It installs the packages of site/package.json into
 * site/node_modules, which needs Node 22.12 or later.
 *
 *   npm run docs                        builds, and checks every link and anchor of what was built
 *   npm run docs -- --screenshots       also opens pages in Chromium at the width of a phone and of a desk
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { globSync } from 'tinyglobby';
import { root, run } from './command.mjs';
import { apiPages } from './docs-api.mjs';
import { screenshots } from './docs-screenshots.mjs';
import { progress } from './step.mjs';

const NODE_MIN = [22, 12];
const BASE = (process.env.DOCS_BASE ?? '/').replace(/\/?$/, '/');
const SITE = join(root, 'site');
const OUT = join(root, 'build', 'site');

/** Documents outside of docs/ that are also pages, as path in the repository → path on the site. */
const OTHERS = new Map([
  ['SECURITY.md', 'project/security.md'],
  ['CHANGELOG.md', 'project/changelog.md'],
]);

/**
 * Returns the pages as their sources have them. `path` is the path in the repository, and `to` the path below
 * the site's root. `api` has the pages that are not files of the repository.
 */
function pagesOf(api) {
  const read = (path) => ({ path, text: readFileSync(join(root, path), 'utf8') });
  const docs = globSync('docs/**/*.md', { cwd: root }).sort();
  return [...[...docs, ...OTHERS.keys()].map(read), ...api].map(({ path, text }) => {
    const to = OTHERS.get(path) ?? path.replace(/^docs\//, '');
    const [, title = '', body = ''] = /^# (.*)\n+([\s\S]*)$/.exec(text) ?? [];
    const paragraph = body.split('\n\n').find((part) => /^[^#|<!\-[]/.test(part)) ?? title;
    return { path, to, text, body, title: plain(title), description: plain(paragraph) };
  });
}

/** Returns Markdown as text on one line. */
function plain(markdown) {
  return markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}

/**
 * Returns the address of a page below the site's root: `guides/streams.md` is at `guides/streams/`, and
 * `index.md` of a folder is at the folder's address.
 */
const slugOf = (to) =>
  (to === 'README.md' ? '' : `${to.replace(/\/index\.md$/, '').replace(/\.md$/, '')}/`).toLowerCase();

/**
 * Returns text whose relative links lead to the address that `addressOf(target)` returns. A link to a file
 * that the site does not have becomes its text.
 */
function relinked(text, path, addressOf) {
  const parts = text.split(/(^```[\s\S]*?^```$)/m);
  const link = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:)([^)\s]*)\)/g;
  return parts
    .map((part, i) => {
      if (i % 2 === 1) return part;
      return part.replace(link, (all, picture, label, target) => {
        const [file, anchor] = target.split('#');
        if (file === '') return all;
        const address = addressOf(posix.join(posix.dirname(path), file));
        if (address === undefined) return picture ? '' : label;
        return `${picture}[${label}](${address}${anchor === undefined ? '' : `#${anchor}`})`;
      });
    })
    .join('');
}

/** Returns groups and pages in the order of the contents page, docs/README.md. */
function sidebarOf(pages) {
  const contents = pages.find(({ path }) => path === 'docs/README.md');
  const used = new Set();
  const entry = (path) => {
    const page = pages.find((each) => each.path === path);
    if (page === undefined || used.has(path)) return [];
    used.add(path);
    return [{ label: page.title, link: `/${slugOf(page.to)}` }];
  };
  const groups = contents.body
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      label: section.slice(0, section.indexOf('\n')),
      collapsed: true,
      items: [...section.matchAll(/\]\(([^)#\s]+)/g)].flatMap(([, link]) => entry(posix.join('docs', link))),
    }));
  const rest = pages.filter(({ path }) => path !== 'docs/README.md' && !used.has(path));
  const api = rest.filter(({ path }) => /^docs\/reference\/api\/.*index\.md$/.test(path));
  groups.push({ label: 'API', collapsed: true, items: api.flatMap(({ path }) => entry(path)) });
  const decisions = rest.filter(({ path }) => path.startsWith('docs/internals/decisions/'));
  groups.push({ label: 'Decisions', collapsed: true, items: decisions.flatMap(({ path }) => entry(path)) });
  const project = rest.filter(({ path }) => !path.startsWith('docs/reference/api/'));
  groups.push({ label: 'Project', collapsed: true, items: project.flatMap(({ path }) => entry(path)) });
  return groups.filter(({ items }) => items.length > 0);
}

/** Writes the prepared pages, their twins, pictures, schemas and llms.txt. */
function prepare(api) {
  const pages = pagesOf(api);
  const content = join(SITE, 'src', 'content', 'docs');
  const open = join(SITE, 'public');
  for (const folder of [content, open]) rmSync(folder, { recursive: true, force: true });
  const byPath = new Map(pages.map((page) => [page.path, page]));
  const asset = (path) => {
    if (!/^docs\/(pictures|schemas)\//.test(path) || !existsSync(join(root, path))) return undefined;
    return `${BASE}${path.replace(/^docs\//, '')}`;
  };
  const write = (file, text) => {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  for (const { path, to, text, body, title, description } of pages) {
    const page = (target) => (byPath.has(target) ? `${BASE}${slugOf(byPath.get(target).to)}` : asset(target));
    const twin = (target) => (byPath.has(target) ? `${BASE}${byPath.get(target).to}` : asset(target));
    const head = `---\ntitle: ${JSON.stringify(title)}\ndescription: ${JSON.stringify(description)}\n---\n\n`;
    const name = to === 'README.md' ? 'index.md' : to.toLowerCase();
    write(join(content, name), head + relinked(body, path, page));
    write(join(open, to), relinked(text, path, twin));
  }
  for (const folder of ['pictures', 'schemas'])
    cpSync(join(root, 'docs', folder), join(open, folder), { recursive: true });
  cpSync(join(SITE, 'favicon.svg'), join(open, 'favicon.svg'));
  const lines = pages.map(({ to, title, description }) => `- [${title}](${BASE}${to}): ${description}`);
  write(
    join(open, 'llms.txt'),
    `# rdma-rpc\n\n> Typed RPC for Node.js over RDMA, shared memory and TCP.\n\n## Pages\n\n${lines.join('\n')}\n`,
  );
  write(join(SITE, 'src', 'sidebar.json'), `${JSON.stringify(sidebarOf(pages), undefined, 2)}\n`);
  return pages;
}

/** Returns links of the built pages that lead nowhere, and pages that lack their `.md` twin. */
function brokenLinks(pages) {
  const idsOf = new Map();
  const html = globSync('**/*.html', { cwd: OUT });
  const read = (file) => readFileSync(join(OUT, file), 'utf8');
  for (const file of html)
    idsOf.set(file, new Set([...read(file).matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id)));
  const broken = html.flatMap((file) =>
    [...read(file).matchAll(/\shref="([^"]+)"/g)]
      .map(([, href]) => href)
      .filter((href) => href.startsWith('#') || (href.startsWith(BASE) && !href.startsWith('//')))
      .filter((href) => {
        const [path, anchor] = decodeURI(href).split('#');
        const below = path.slice(BASE.length);
        const target =
          path === '' ? file : /\.\w+$/.test(below) ? below : `${below.replace(/\/?$/, '/')}index.html`;
        const found = target.replace(/^\//, '');
        if (!existsSync(join(OUT, found))) return true;
        return anchor !== undefined && anchor !== '' && idsOf.has(found) && !idsOf.get(found).has(anchor);
      })
      .map((href) => `${file}: ${href}`),
  );
  const twins = pages.filter(({ to }) => !existsSync(join(OUT, to))).map(({ to }) => `${to}: no twin`);
  return [...new Set([...broken, ...twins])];
}

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1])) {
  console.error(`npm run docs needs Node ${NODE_MIN.join('.')} or later; this is ${process.versions.node}`);
  process.exit(1);
}

const lock = createHash('sha256')
  .update(readFileSync(join(SITE, 'package-lock.json')))
  .digest('hex');
const stamp = join(SITE, 'node_modules', '.stamp');
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== lock) {
  // `npm ci` is not used, because it refuses where a registry lacks an optional package of another platform.
  await progress('site: packages', () =>
    run([
      'npm',
      'install',
      '--no-save',
      '--prefix',
      SITE,
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--prefer-offline',
    ]),
  );
  writeFileSync(stamp, lock);
}
const api = await progress('site: API by TypeDoc', () => apiPages(SITE));
const pages = prepare(api);
const astro = join(SITE, 'node_modules', 'astro', 'bin', 'astro.mjs');
await progress(`site: ${pages.length} pages`, () =>
  run([process.execPath, astro, 'build', '--root', SITE], {
    cwd: SITE,
    env: { ASTRO_TELEMETRY_DISABLED: '1' },
  }),
);
const broken = brokenLinks(pages);
if (broken.length > 0) {
  console.error(`links that lead nowhere:\n${broken.join('\n')}`);
  process.exit(1);
}
console.log(`build/site: ${pages.length} pages, every link leads somewhere`);
if (process.argv.includes('--screenshots')) await screenshots(OUT, BASE);

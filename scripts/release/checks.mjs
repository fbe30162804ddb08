/**
 * The conditions that must hold before a release is published, as a list of checks. Each check returns its
 * errors. scripts/release.mjs uses the checks; test/scripts/release-checks.test.ts breaks a package for each
 * check.
 */
import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { root } from '../command.mjs';
import { tooMuch } from '../symbols.mjs';
import { filesUnder, importsOf } from './closure.mjs';
import { INSTALL_PAGES, unpublishedIn } from './install-pages.mjs';
import { relativeLinks } from './links.mjs';

const MB = 1e6;
/** Maximum number of bytes of an unpacked package. Each limit is today's size and a tenth more. */
const UNPACKED_MAX = {
  'rdma-rpc': 4.5 * MB,
  'rdma-rpc-cli': 9 * MB,
  '@rdma-rpc/linux-x64': 6 * MB,
  '@rdma-rpc/linux-arm64': 6 * MB,
};

const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
const manifestOf = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
const isExecutable = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** Checks that every version that a package names is the version of the release. */
function versions({ folder }, version) {
  const manifest = manifestOf(folder);
  const own = Object.entries({ ...manifest.optionalDependencies, ...manifest.peerDependencies }).filter(
    ([name]) => name.startsWith('@rdma-rpc/') || name === 'rdma-rpc-cli',
  );
  return [['version', manifest.version], ...own]
    .filter(([, found]) => found !== version)
    .map(([what, found]) => `${what} is ${found}, not ${version}`);
}

function licences({ folder }) {
  const needed = ['LICENSE'];
  if (existsSync(join(folder, 'dist/vendor'))) needed.push('dist/vendor/NOTICES');
  return needed.filter((file) => !existsSync(join(folder, file))).map((file) => `${file} is missing`);
}

function size({ name, folder }) {
  const bytes = filesUnder(folder, '.').reduce(
    (sum, file) => sum + readFileSync(join(folder, file)).length,
    0,
  );
  const most = UNPACKED_MAX[name];
  return bytes <= most ? [] : [`${bytes} bytes, and may have ${most}`];
}

/**
 * Checks that the source maps that files name exist. A debugger would search for missing source maps in vain.
 */
function sourceMaps({ folder }) {
  return filesUnder(folder, '.')
    .filter((file) => /\.(js|d\.ts)$/.test(file))
    .flatMap((file) => {
      const [, map] = /\/\/# sourceMappingURL=(\S+)\s*$/.exec(readFileSync(join(folder, file), 'utf8')) ?? [];
      if (map === undefined || map.startsWith('data:')) return [];
      return existsSync(join(folder, dirname(file), map))
        ? []
        : [`${file} names the source map ${map}, which is not there`];
    });
}

/** Checks that all files that package.json names are in the package. */
function entries({ folder }) {
  const { exports = {}, bin = {}, imports = {} } = manifestOf(folder);
  const named = [...Object.values(exports), ...Object.values(imports)]
    .flatMap((target) => (typeof target === 'string' ? [target] : Object.values(target)))
    .filter((path) => path.startsWith('./'));
  return [
    ...[...named, ...Object.values(bin)]
      .filter((path) => !existsSync(join(folder, path)))
      .map((path) => `${path} is missing`),
    ...Object.values(bin)
      .filter((path) => existsSync(join(folder, path)) && !isExecutable(join(folder, path)))
      .map((path) => `${path} may not be executed`),
    // `npm publish` warns that such a path is invalid and was removed.
    ...Object.values(bin)
      .filter((path) => path.startsWith('./'))
      .map((path) => `bin: ${path} must not begin with ./`),
  ];
}

/**
 * Returns the declaration that a declaration imports: the compiler reads `from './a.ts'` and
 * `import('./a.ts')` as `./a.d.ts`.
 */
const declarationAt = (path) => path.replace(/\.[jt]s$/, '.d.ts');

/**
 * Checks that modules and declarations find what they import, in the package or in the packages on which it
 * depends.
 */
function imported({ folder }) {
  const { imports = {}, dependencies, optionalDependencies, peerDependencies, name } = manifestOf(folder);
  const others = new Set([
    name,
    ...Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }),
  ]);
  const files = filesUnder(folder, '.').filter((file) => /^dist\/(?!vendor\/).*\.(js|d\.ts)$/.test(file));
  return files.flatMap((file) => {
    const isDeclaration = file.endsWith('.d.ts');
    const lost = importsOf(folder, file)
      .map((path) => (isDeclaration ? declarationAt(path) : path))
      .filter((path) => !existsSync(join(folder, path)));
    const text = readFileSync(join(folder, file), 'utf8');
    const bare = [...text.matchAll(/^(?:import|export)\b[^;'"]*?from ["']([^."'][^"']*)["']/gm)].map(
      ([, each]) => each,
    );
    const unknown = bare.filter((each) => {
      if (each.startsWith('node:')) return false;
      if (each.startsWith('#')) return !(each in imports);
      return !others.has(
        each
          .split('/')
          .slice(0, each.startsWith('@') ? 2 : 1)
          .join('/'),
      );
    });
    return [
      ...lost.map((path) => `${file} imports ${normalize(path)}, which is not there`),
      ...unknown.map((each) => `${file} imports ${each}, which package.json does not name`),
    ];
  });
}

/**
 * The ELF machine numbers of processors. Native code must be for the processor that its package names, and
 * must load with the oldest glibc.
 */
const MACHINES = { x64: 62, arm64: 183 };
function binaries({ folder }) {
  const { cpu: [arch] = [] } = manifestOf(folder);
  return filesUnder(folder, '.')
    .filter((file) => /\.(node|so)$|rdma_rpc_perf$/.test(file))
    .flatMap((file) => {
      const path = join(folder, file);
      const wanted = MACHINES[arch ?? (file.includes('arm64') ? 'arm64' : 'x64')];
      const machine = readFileSync(path).readUInt16LE(18);
      return machine === wanted
        ? tooMuch(path).map((much) => `${file} needs ${much}`)
        : [`${file} is for another processor`];
    });
}

/** Checks that the links of a package's pages lead to a file of the package, or to a URL. */
function links({ folder }) {
  return filesUnder(folder, '.')
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) =>
      relativeLinks(readFileSync(join(folder, file), 'utf8'))
        .filter((path) => !existsSync(join(folder, dirname(file), path)))
        .map((path) => `${file} links to ${path}, which is not there`),
    );
}

/** The checks of each package. */
export const packageChecks = {
  'one version everywhere': versions,
  licences,
  size,
  'no source map to nowhere': sourceMaps,
  'exports, imports and commands are there': entries,
  'modules and types find what they import': imported,
  'links of pages lead somewhere': links,
};
/**
 * Checks that apply only to binaries that were linked with an older Debian. This machine's own build needs
 * this machine's glibc.
 */
export const binaryChecks = { 'binaries load where they say': binaries };

/** The checks of the repository. `version` is that of package.json. */
export const repositoryChecks = {
  'package-lock.json has the version': (version) => {
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
    const found = [lock.version, lock.packages[''].version];
    return found.every((each) => each === version) ? [] : [`it has ${found.join(' and ')}`];
  },
  'CHANGELOG.md has the version': (version) => {
    const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
    return changelog.includes(`\n## [${version}]`) ? [] : [`there is no heading "## [${version}]"`];
  },
  'documents say how to install from the registry': () =>
    unpublishedIn(
      Object.fromEntries(INSTALL_PAGES.map((page) => [page, readFileSync(join(root, page), 'utf8')])),
    ),
  'RDMA_RPC_REPOSITORY names the repository': () =>
    /^https:\/\/.+[^/]$/.test(process.env.RDMA_RPC_REPOSITORY ?? '')
      ? []
      : ['without its URL (https://HOST/OWNER/NAME) the links of the README lead nowhere on the npm page'],
  'everything is committed': () => {
    const changes = git('status', '--porcelain');
    return changes === '' ? [] : changes.split('\n');
  },
  'the commit has the tag': (version) => {
    const tags = git('tag', '--points-at', 'HEAD').split('\n');
    return tags.includes(`v${version}`) ? [] : [`git tag v${version}`];
  },
};

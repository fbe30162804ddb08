/**
 * The packages of a release and their contents. `rdma-rpc` has what a service needs. `rdma-rpc-cli` has the
 * generator and the commands. A package for each platform has its native code, so that an install takes only
 * one of these. scripts/release.mjs uses it. docs/internals/decisions/release.md explains why the packages
 * are divided in this way.
 */
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { root } from '../command.mjs';
import { prebuilt } from '../prebuilds.mjs';
import { filesBehind, filesUnder } from './closure.mjs';
import { linksThatWork } from './links.mjs';

const BUNDLE = 'dist/bundle';
export const PLATFORMS = ['x64', 'arm64'];
const platformPackage = (arch) => `@rdma-rpc/linux-${arch}`;
/**
 * The files of a platform's package. The plug-in is missing where the headers that it needs are not
 * installed.
 */
const NATIVE = ['rdma_rpc.node', 'rdma_rpc_verbs.so'];
const PERF = 'rdma_rpc_perf';
/** The file that generated code imports as `rdma-rpc/generated/v1`. */
const OWN_CODEC = 'generated-v1.js';
/**
 * The text of the module `rdma-rpc/codegen` in the package `rdma-rpc`, which re-exports the generator. The
 * generator itself is in the other package.
 */
const CODEGEN = "export * from 'rdma-rpc-cli/codegen';\n";

const source = () => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

function copy(into, paths) {
  for (const path of paths) {
    mkdirSync(join(into, dirname(path)), { recursive: true });
    cpSync(join(root, path), join(into, path), {
      recursive: true,
      filter: (from) => !/\.map$|\/native\/test(\/|$)/.test(from),
    });
  }
}

/**
 * Returns the metadata that all packages have in common. `repository` is the origin of the packages, which
 * npm's provenance compares.
 */
function common({ version, license, author, keywords, engines }, repository) {
  return {
    version,
    license,
    author,
    keywords,
    engines,
    ...(repository !== undefined && { repository: { type: 'git', url: `git+${repository}.git` } }),
    publishConfig: { access: 'public' },
  };
}

/** Returns the exports without the conditions that only this repository uses and that editors would offer. */
function published(exports) {
  return Object.fromEntries(
    Object.entries(exports).map(([entry, target]) => [
      entry,
      typeof target === 'string' ? target : { types: target.types, default: target.default },
    ]),
  );
}

/** Returns the imports that the package's files use. */
function usedImports(imports, folder, files) {
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8'));
  return Object.fromEntries(
    Object.entries(imports).filter(([name]) =>
      texts.some((text) => text.includes(`'${name}'`) || text.includes(`"${name}"`)),
    ),
  );
}

/**
 * Returns the folders of vendored code that these imports name. Each folder is copied as a whole, because a
 * file in it may read another file.
 */
const vendored = (imports) =>
  Object.values(imports).flatMap((target) =>
    [target.types, target.default].filter((path) => path?.startsWith('./')).map((path) => path.slice(2)),
  );

function write(into, manifest) {
  writeFileSync(join(into, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  copyFileSync(join(root, 'LICENSE'), join(into, 'LICENSE'));
  return { name: manifest.name, version: manifest.version, folder: into };
}

/**
 * Returns the packages of all platforms, including those that were not built. Package managers take the
 * package that fits the platform.
 */
const platforms = (version) => Object.fromEntries(PLATFORMS.map((arch) => [platformPackage(arch), version]));

/** Lays out the package that a program needs to serve and to call. */
function runtimePackage(into, repository) {
  const from = source();
  const exports = published(from.exports);
  const entries = Object.entries(exports)
    .filter(([entry, target]) => typeof target === 'object' && entry !== './codegen')
    .map(([, target]) => target.default.slice(2));
  const files = filesBehind(root, entries);
  copy(into, [
    ...files,
    ...declarationsIn('dist/runtime'),
    'docs',
    'examples/bpftrace',
    'examples/dashboard',
    'examples/kubernetes',
  ]);
  copy(into, ['README.md', 'CHANGELOG.md', 'SECURITY.md']);
  const readme = join(into, 'README.md');
  const to = { folder: into, repository, version: from.version };
  writeFileSync(readme, linksThatWork(readFileSync(readme, 'utf8'), to));
  writeFileSync(join(into, BUNDLE, 'codegen.js'), CODEGEN);
  writeFileSync(join(into, 'dist/codegen.d.ts'), CODEGEN);
  exports['./codegen'] = { types: './dist/codegen.d.ts', default: './dist/bundle/codegen.js' };
  const command = join(into, BUNDLE, 'command.js');
  const delegate = readFileSync(join(root, 'dist/cli/delegate.js'), 'utf8');
  writeFileSync(command, delegate.replace(/^\/\/# sourceMappingURL=.*\n?/m, ''), { mode: 0o755 });
  const imports = usedImports(from.imports, root, files);
  copy(into, [...vendored(imports), 'dist/vendor/NOTICES']);
  const { name, description, type, peerDependencies, peerDependenciesMeta } = from;
  const { 'ts-morph': _, ...peers } = peerDependencies;
  const { 'ts-morph': __, ...meta } = peerDependenciesMeta;
  return write(into, {
    name,
    description,
    ...common(from, repository),
    type,
    imports,
    exports,
    sideEffects: false,
    bin: { 'rdma-rpc': 'dist/bundle/command.js' },
    optionalDependencies: platforms(from.version),
    peerDependencies: { ...peers, 'rdma-rpc-cli': from.version },
    peerDependenciesMeta: { ...meta, 'rdma-rpc-cli': { optional: true } },
  });
}

/**
 * Returns the declarations under a folder. They import each other by paths, so the whole folder is copied.
 */
const declarationsIn = (folder) => filesUnder(root, folder).filter((path) => path.endsWith('.d.ts'));

/**
 * Generated code inside of the commands finds its codec in their own package. With the codec of a `rdma-rpc`
 * beside it, the process would have two codecs. Only imports are changed, because the generator writes the
 * same name into the code of applications.
 */
function keepToItself(path) {
  const text = readFileSync(path, 'utf8');
  const imports = /(\bfrom\s*|\bimport\s*\(?\s*)"rdma-rpc\/generated\/v1"/g;
  const own = text.replaceAll(imports, (_, before) => `${before}"./${OWN_CODEC}"`);
  if (own !== text) writeFileSync(path, own);
}

/**
 * Lays out the generator, the commands, the program of `rdma-rpc perf`, and the sources for `build-addon`.
 */
function cliPackage(into, arches, repository) {
  const from = source();
  const entries = ['cli.js', 'protoc-gen.js', 'codegen.js', OWN_CODEC].map((file) => `${BUNDLE}/${file}`);
  const files = filesBehind(root, entries);
  copy(into, [...files, ...declarationsIn('dist/codegen'), ...declarationsIn('dist/runtime/codec')]);
  copy(into, ['dist/vendor', 'proto', 'CMakeLists.txt', 'native']);
  for (const file of files) keepToItself(join(into, file));
  for (const arch of arches) copy(into, [join(prebuilt(arch), PERF)]);
  writeFileSync(join(into, 'README.md'), cliReadme(from.version));
  const { peerDependencies: peers } = from;
  return write(into, {
    name: 'rdma-rpc-cli',
    description: 'The generator and the commands of rdma-rpc: typed RPC for Node.js over RDMA',
    ...common(from, repository),
    type: 'module',
    imports: from.imports,
    exports: {
      './codegen': published(from.exports)['./codegen'],
      './package.json': './package.json',
    },
    bin: { 'rdma-rpc-cli': 'dist/bundle/cli.js', 'protoc-gen-rdma-rpc': 'dist/bundle/protoc-gen.js' },
    binary: from.binary,
    optionalDependencies: platforms(from.version),
    peerDependencies: { 'ts-morph': peers['ts-morph'], '@grpc/grpc-js': peers['@grpc/grpc-js'] },
    peerDependenciesMeta: { 'ts-morph': { optional: true }, '@grpc/grpc-js': { optional: true } },
  });
}

const cliReadme = (version) => `# rdma-rpc-cli

The generator and the commands of rdma-rpc, such as \`rdma-rpc gen\`, \`doctor\`, \`ping\`, \`call\`, \`bench\`,
\`top\` and \`trace\`. Install this package where code is generated, and on machines from which you inspect
services. A running service needs only \`rdma-rpc\`.

\`\`\`sh
npm install --save-dev rdma-rpc-cli@${version}
npx rdma-rpc gen greeter.proto -o gen
\`\`\`
`;

/** Lays out the native code for one platform. Package managers install it on that platform. */
function platform(into, arch, repository) {
  const from = source();
  mkdirSync(into, { recursive: true });
  for (const file of NATIVE) copyFileSync(join(root, prebuilt(arch), file), join(into, file));
  const name = platformPackage(arch);
  writeFileSync(
    join(into, 'README.md'),
    `# ${name}\n\nThe native code of rdma-rpc for Linux with glibc 2.28 or later on ${arch}.\nrdma-rpc installs it by itself.\n`,
  );
  const notices = join(root, 'dist/vendor/NOTICES');
  copyFileSync(notices, join(into, 'NOTICES'));
  return write(into, {
    name,
    description: `The native code of rdma-rpc for Linux on ${arch}`,
    ...common(from, repository),
    type: 'commonjs',
    os: ['linux'],
    cpu: [arch],
    libc: ['glibc'],
  });
}

/** Lays out all packages under `folder`. `arches` are the architectures for which native code exists. */
export function assemble(folder, { arches, repository }) {
  rmSync(folder, { recursive: true, force: true });
  const at = (name) => join(folder, basename(name));
  return [
    ...arches.map((arch) => platform(at(platformPackage(arch)), arch, repository)),
    cliPackage(at('rdma-rpc-cli'), arches, repository),
    runtimePackage(at('rdma-rpc'), repository),
  ];
}

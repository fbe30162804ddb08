/**
 * Lists the .proto files of the corpus: groups of files that import each other, each with its include
 * directories.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';

/**
 * All of the 8,000 files of Google's APIs are generated. The files of these folders are also compiled and
 * loaded.
 */
const compiled = new Set([
  'api',
  'bytestream',
  'firestore',
  'iam',
  'logging',
  'longrunning',
  'protobuf',
  'pubsub',
  'rpc',
  'spanner',
  'storage',
  'type',
  'watcher',
]);

/**
 * The Envoy files in the package use an option of protoc-gen-validate that is newer than the validate.proto
 * in the package. Returns a folder with validate.proto as later releases have it.
 */
function newerValidate(modules, old) {
  const folder = join(modules, '../newer-validate');
  const path = join(folder, 'validate');
  if (!existsSync(join(old, 'validate/validate.proto'))) return folder;
  mkdirSync(path, { recursive: true });
  const text = readFileSync(join(old, 'validate/validate.proto'), 'utf8');
  const rule = 'optional bool strict = 25 [default = true];';
  writeFileSync(join(path, 'validate.proto'), text.replace(rule, `${rule} optional bool ignore_empty = 26;`));
  return folder;
}

/**
 * Returns the groups of .proto files. `modules` is the folder with the installed packages. A group whose
 * folder is missing is left out.
 */
export function groups(modules) {
  const google = join(modules, 'google-proto-files');
  const xds = join(modules, '@grpc/grpc-js-xds/deps');
  const envoy = [
    ...['envoy-api', 'xds', 'googleapis'].map((name) => join(xds, name)),
    newerValidate(modules, join(xds, 'protoc-gen-validate')),
  ];
  const parts = readdirSync(join(google, 'google')).map((part) => ({
    name: `google-${part}`,
    include: [google],
    files: `google/${part}/**/*.proto`,
    compile: compiled.has(part),
  }));
  const one = (name, directory, files = '**/*.proto') => ({
    name,
    include: [directory],
    files,
    compile: true,
  });
  return [
    ...parts,
    one('google-grafeas', google, 'grafeas/**/*.proto'),
    {
      name: 'envoy',
      include: envoy,
      files: 'envoy/**/*.proto',
      compile: true,
    },
    { name: 'xds', include: [envoy[1], ...envoy], files: '{xds,udpa}/**/*.proto', compile: true },
    one('validate', join(xds, 'protoc-gen-validate'), 'validate/*.proto'),
    one('gax', join(modules, 'google-gax/build/protos')),
    one('dapr', join(modules, '@dapr/dapr/proto')),
    one('durabletask', join(modules, '@dapr/durabletask-js/proto')),
    one('etcd3', join(modules, 'etcd3/proto')),
    one('reflection', join(modules, '@grpc/reflection/build/proto')),
    one('protobufjs', join(modules, 'protobufjs'), 'google/**/*.proto'),
    one('libprotobuf-dev', '/usr/include', 'google/protobuf/**/*.proto'),
  ].filter(({ include }) => existsSync(include[0]));
}

export function filesOf({ include, files }) {
  return globSync(files, { cwd: include[0], absolute: true }).sort();
}

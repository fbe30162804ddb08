/**
 * Measures the cost for an application that encodes and decodes one message of a file: its minified bundle,
 * built by esbuild, with our code and with that of protobuf-es. main.ts calls these functions.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { embedFileDesc } from '@bufbuild/protobuf/codegenv2';
import { build } from 'esbuild';
import { packageRoot } from '../paths.ts';
import { describedFile } from './peers.ts';

export interface Bundle {
  readonly peer: string;
  readonly what: string;
  readonly bytes: number;
}

const directory = join(packageRoot, 'build', 'bench-codec');

async function bundled(source: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: packageRoot, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['rdma-rpc-source'],
  });
  return outputFiles.reduce((sum, file) => sum + file.contents.length, 0);
}

/**
 * Returns the code that protobuf-es's plugin writes: the same two lines per file and one line per message.
 */
function describedModule(): string {
  const embedded = embedFileDesc(describedFile());
  if (embedded.bootable) throw new Error('only descriptor.proto is embedded in another way');
  const names = describedFile().messageType.map(
    ({ name }, i) => `export const ${name}Schema = /*@__PURE__*/ messageDesc(file, ${i});`,
  );
  mkdirSync(directory, { recursive: true });
  const path = join(directory, 'codec_pb.js');
  writeFileSync(
    path,
    `import { fileDesc, messageDesc } from '@bufbuild/protobuf/codegenv2';
export const file = /*@__PURE__*/ fileDesc('${embedded.base64()}');
${names.join('\n')}
`,
  );
  return path;
}

export async function measureBundles(): Promise<Bundle[]> {
  const generated = join(packageRoot, 'bench/codec/gen/codec.rdma.ts');
  const described = describedModule();
  const bundles: Bundle[] = [];
  for (const message of ['Small', 'Medium']) {
    const ours = `import { ${message} } from '${generated}';
      console.log(${message}.encode({}), ${message}.decode(new Uint8Array(0)));`;
    const theirs = `import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
      import { ${message}Schema } from '${described}';
      console.log(toBinary(${message}Schema, create(${message}Schema, {})), fromBinary(${message}Schema, new Uint8Array(0)));`;
    bundles.push(
      { peer: 'rdma-rpc', what: message, bytes: await bundled(ours) },
      { peer: 'protobuf-es', what: message, bytes: await bundled(theirs) },
    );
  }
  return bundles;
}

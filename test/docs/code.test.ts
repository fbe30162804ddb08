/**
 * Tests the TypeScript of all pages of docs/. Every program compiles in strict mode, and programs marked as
 * runnable print the output in their comments.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { root } from '../house/tree.ts';
import { filesOf } from '../package/quick-start.ts';
import { documents, namesIn, pages, programsOf, tableOf } from './document.ts';

const COMPILE_LIMIT_MS = 120_000;
const programs = pages.flatMap(programsOf).map((program, i) => ({
  ...program,
  where: `${program.page}, ${program.title}`,
  file: `${program.page.replace(/\W+/g, '-')}-${i}.ts`,
}));
let directory = '';

beforeAll(async () => {
  mkdirSync(join(root, 'gen'), { recursive: true });
  directory = mkdtempSync(join(root, 'gen', 'docs-pages-'));
  const protos = pages.flatMap(({ text }) => [...filesOf(text)]).filter(([name]) => name.endsWith('.proto'));
  for (const [name, text] of protos) writeFileSync(join(directory, name), text);
  const files = protos.map(([name]) => join(directory, name));
  await generate({ files, include: [directory], out: join(directory, 'gen') });
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Returns the names as an object type that has exactly the keys of a type. */
function namesAreKeys(mark: string, type: string): string {
  const names = tableOf(documents, mark).map(([cell = '']) => namesIn(cell)[0]?.replace(/\(.*\)/, ''));
  return `export const ${mark.replace(/\W/g, '_')}: Record<${type}, 0> = { ${names.map((name) => `${name}: 0`).join(', ')} };\n`;
}

test(
  'compiles, and the tables of fields name all of them and no others',
  () => {
    for (const { file, code } of programs) writeFileSync(join(directory, file), `${code}\nexport {};\n`);
    writeFileSync(
      join(directory, 'tables.ts'),
      `import type { CallOptions, HandlerContext, PeerInfo, RpcError } from 'rdma-rpc';\n${namesAreKeys('keys: CallOptions', 'keyof CallOptions')}${namesAreKeys('keys: HandlerContext', 'keyof HandlerContext')}${namesAreKeys('keys: PeerInfo', 'keyof PeerInfo')}${namesAreKeys('keys: RpcError', 'Exclude<keyof RpcError, keyof Error>')}`,
    );
    const compilerOptions = {
      noEmit: true,
      rootDir: '../..',
      exactOptionalPropertyTypes: true,
      // Variables of a program are also available to the programs that follow it.
      noUnusedLocals: false,
    };
    const config = { extends: '../../tsconfig.json', compilerOptions, include: ['.'] };
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config));
    let output = '';
    try {
      execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', directory], {
        encoding: 'utf8',
      });
    } catch (error) {
      output = (error as { stdout: string }).stdout;
    }
    // The runtime's own sources are checked by their build, with its settings.
    const ours = (line: string): boolean => line.includes('docs-pages-') || line.startsWith('error');
    expect(output.split('\n').filter(ours)).toEqual([]);
  },
  COMPILE_LIMIT_MS,
);

test.each(programs.filter(({ run }) => run))(
  '$where: gives what its comments say',
  async ({ file, code }) => {
    let checks = 0;
    const checked = code.replace(/^(.*); \/\/ → (.*)$/gm, (_, expression: string, value: string) => {
      ++checks;
      return `expect(${expression.trim()}).toEqual(${value});`;
    });
    expect(checks).toBeGreaterThan(0);
    const path = join(directory, `run-${file}`);
    writeFileSync(path, `import { expect } from 'vitest';\n${checked}`);
    await import(path);
  },
);

test('most programs are run', () => {
  expect(programs.length).toBeGreaterThan(30);
  expect(programs.filter(({ run }) => !run).map(({ where }) => where)).toEqual([
    'docs/deploy/kubernetes.md, Shut down without losing calls',
    'docs/guides/discovery.md, Kubernetes',
    'docs/guides/discovery.md, etcd',
    'docs/guides/load-balancing.md, Health checks',
    'docs/guides/load-balancing.md, Several addresses of one server',
    'docs/guides/load-balancing.md, Weights that servers report',
    'docs/guides/load-balancing.md, Send calls with the same key to the same server',
    'docs/guides/load-balancing.md, Your own resolver',
    'docs/guides/security-and-tls.md, TLS and mTLS',
    'docs/guides/service-config.md, Give a configuration',
    'docs/guides/services.md, Write a handler',
    'docs/guides/worker-threads.md, Channels and servers in a worker',
    'docs/guides/workload-identity.md, SPIFFE',
    'docs/migrate/from-connect-es.md, Keep connect-es clients',
    'docs/migrate/from-connect-es.md, Side by side',
    'docs/migrate/from-connect-es.md, Side by side',
    'docs/migrate/from-grpc-js.md, Side by side',
    'docs/reference/options.md, Configure',
    'docs/start/quick-start.md, Write the server',
    'docs/start/quick-start.md, Write the client',
  ]);
});

test('every block of TypeScript is read by a test', () => {
  const marks = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/^```(?:ts|typescript)\b *(.*)$/gm)].map(([, mark]) => ({ path, mark })),
  );
  const ours = ['', 'run', 'begin'];
  // test/codegen/docs.test.ts tests these pages.
  const generator = ['docs/reference/generated-code.md', 'docs/reference/generator.md'];
  const unread = marks.filter(({ path, mark }) => !ours.includes(mark!) && !generator.includes(path));
  expect(unread).toEqual([]);
});

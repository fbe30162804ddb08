/**
 * Tests the publication of a release: `npm publish` of the clone is refused, a release that failed in the
 * middle can be repeated, and pages that still describe a package file are found.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../house/tree.ts';

type Run = (command: readonly string[], options: object) => Promise<string>;
interface Options {
  readonly really: boolean;
  readonly provenance: boolean;
  readonly run: Run;
}
const load = (path: string): Promise<unknown> =>
  import(new URL(`../../scripts/${path}`, import.meta.url).href);
const { publish } = (await load('release/publish.mjs')) as {
  publish(subject: object, options: Options): Promise<string>;
};
const { CommandFailed } = (await load('command.mjs')) as {
  CommandFailed: new (command: readonly string[], code: number, output: string) => Error;
};
const { unpublishedIn } = (await load('release/install-pages.mjs')) as {
  unpublishedIn(pages: Readonly<Record<string, string>>): string[];
};
const subject = { name: '@rdma-rpc/linux-x64', version: '1.2.3', folder: '/made' };

test.each([
  {
    what: 'a rehearsal asks the registry for nothing',
    really: false,
    known: true,
    commands: ['npm publish --ignore-scripts --dry-run --offline'],
    done: 'could be published',
  },
  {
    what: 'a version that the registry lacks is published',
    really: true,
    known: false,
    commands: ['npm view @rdma-rpc/linux-x64@1.2.3 version', 'npm publish --ignore-scripts --provenance'],
    done: 'published',
  },
  {
    what: 'a version that the registry has is left out',
    really: true,
    known: true,
    commands: ['npm view @rdma-rpc/linux-x64@1.2.3 version'],
    done: 'is in the registry already',
  },
])('$what', async ({ really, known, commands, done }) => {
  const ran: string[] = [];
  const run: Run = async (command) => {
    ran.push(command.join(' '));
    if (command[1] === 'view' && !known) throw new CommandFailed(command, 1, 'E404');
    return '1.2.3\n';
  };
  expect(await publish(subject, { really, provenance: true, run })).toBe(done);
  expect(ran).toEqual(commands);
});

const login = 'npm warn publish This command requires you to be logged in to https://r.example/ (dry-run)';
const rehearse = (output: string): Promise<string> =>
  publish(subject, { really: false, provenance: false, run: async () => output });

test.each([login, 'npm warn Unknown env config "store-dir".', 'npm notice size: 1 kB'])(
  'a rehearsal ignores what is not about the package: %s',
  async (line) => {
    expect(await rehearse(`${line}\n+ a@1.2.3\n`)).toBe('could be published');
  },
);

test("a rehearsal fails with npm's warnings of the package", async () => {
  const warning = 'npm warn publish "bin[a]" script name a.js was invalid and removed';
  await expect(rehearse(`${login}\n${warning}\n+ a@1.2.3\n`)).rejects.toThrow(
    `npm publish warns of @rdma-rpc/linux-x64:\n${warning}`,
  );
});

test('npm publish of the clone is refused, and names the command instead', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/prepack.mjs')], {
    env: { ...process.env, npm_command: 'publish' },
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^prepack: this folder is packed as one package .* `npm run release -- --publish`/);
});

test('finds pages that still describe a package file', () => {
  const pages = {
    'a.md': 'rdma-rpc is not in the npm registry yet.',
    'b.md': 'npm install ../rdma-rpc/rdma-rpc-0.1.0.tgz',
    'c.md': 'npm install rdma-rpc',
  };
  expect(unpublishedIn(pages).map((line) => line.split(' ')[0])).toEqual(['a.md', 'b.md']);
});

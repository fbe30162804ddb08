/**
 * Tests the examples of docs/reference/generated-code.md and generator.md: their output is compared, and
 * their code is run.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { diagnosticsOf } from './workspace.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const page = ['generated-code', 'generator']
  .map((name) => readFileSync(join(root, `docs/reference/${name}.md`), 'utf8'))
  .join('\n');

/** Returns the fenced blocks of one kind, of both pages. */
function blocks(kind: string): string[] {
  return [...page.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)]
    .filter((match) => match[1] === kind)
    .map((match) => match[2] as string);
}

const proto = blocks('proto')[0] ?? '';
let directory = '';
let output = '';

beforeAll(async () => {
  mkdirSync(join(root, 'gen'), { recursive: true });
  directory = mkdtempSync(join(root, 'gen', 'docs-'));
  writeFileSync(join(directory, 'shop.proto'), proto);
  const { outputs } = await generate({ files: [join(directory, 'shop.proto')], out: directory });
  output = outputs[0]?.text ?? '';
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test.each(blocks('ts generated'))('the output contains %s', (block) => {
  expect(output).toContain(block);
});

test('the examples produce the results in their comments', async () => {
  const [example = ''] = blocks('ts example');
  let checks = 0;
  const code = example
    .replace(/^(.*); \/\/ → (.*)$/gm, (_, expression: string, value: string) => {
      checks++;
      return `expect(${expression}).toEqual(${value});`;
    })
    .replace(/^(.*); \/\/ throws (.*)$/gm, (_, expression: string, message: string) => {
      checks++;
      return `expect(() => ${expression}).toThrow(new CodecError(...${JSON.stringify(message.split(': '))}));`;
    });
  expect(checks).toBeGreaterThan(8);
  const file = join(directory, 'example.ts');
  writeFileSync(file, `import { expect } from 'vitest';\n${code}`);
  await import(file);
});

test('the program generates', async () => {
  const [program = ''] = blocks('ts program');
  const out = join(directory, 'out');
  const code = program
    .replace("'protos/shop.proto'", JSON.stringify(join(directory, 'shop.proto')))
    .replace("'protos'", JSON.stringify(directory))
    .replace("'src/gen'", JSON.stringify(out));
  const file = join(directory, 'program.ts');
  writeFileSync(file, code);
  const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
  onTestFinished(() => log.mockRestore());
  await import(file);
  expect(log.mock.calls.flat().join()).toMatch(/^1 of 1 files changed; watch \d files$/);
  expect(readFileSync(join(out, 'shop.rdma.ts'), 'utf8')).toBe(output);
});

test('the error is the one that the generator gives', async () => {
  const [place, line, caret, outcome] = (blocks('text')[0] ?? '').split('\n');
  const broken = proto.replace('  string id = 1;', '  Missing id = 1;');
  expect(await diagnosticsOf({ 'shop.proto': broken })).toEqual([`${place} | Missing`]);
  expect(line?.slice(2)).toBe('  Missing id = 1;');
  expect(caret?.trim()).toBe('^^^^^^^');
  expect(outcome).toBe('nothing was written');
});

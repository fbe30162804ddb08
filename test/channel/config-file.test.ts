/**
 * Tests the file of a service configuration when it is replaced: by another file, by a link as in a mounted
 * ConfigMap of Kubernetes, by a huge file, and by something that is no file.
 */
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ConfigFile } from '../../runtime/client/config/config-file.ts';
import { configLookMs } from '../../runtime/client/connections/limits.ts';
import { Bed, until } from './bed.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-config-'));
  path = join(folder, 'config.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each<[string, () => void, RegExp]>([
  [
    'a huge file',
    () => {
      writeFileSync(path, '');
      truncateSync(path, 2 ** 20 + 1);
    },
    /1048577 bytes.* at most 1048576: shorten the file, or give the option serviceConfig another/,
  ],
  ['a folder', () => mkdirSync(path), /is not a file/],
  ['a pipe to which no program writes', () => execFileSync('mkfifo', [path]), /is not a file/],
])('does not read %s', (_, replace, reason) => {
  writeFileSync(path, '{}');
  const texts: string[] = [];
  const faults: unknown[] = [];
  const file = new ConfigFile(
    path,
    (text) => texts.push(text),
    (fault) => faults.push(fault),
  );
  rmSync(path);
  replace();
  file.reread();
  file.close();
  expect(texts).toEqual(['{}']);
  expect(faults.map(String)).toEqual([expect.stringMatching(reason)]);
});

test('many channels may have the same file', async () => {
  writeFileSync(path, '{}');
  const emitted = vi.spyOn(process, 'emitWarning').mockReturnValue();
  const bed = new Bed();
  for (let i = 0; i < 20; ++i) bed.channel(['a:1'], { serviceConfig: path });
  expect(emitted).not.toHaveBeenCalled();
  emitted.mockRestore();
  await bed.close();
});

test('notices a file that was replaced before the watch has looked at it', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  writeFileSync(path, 'one');
  const texts: string[] = [];
  const file = new ConfigFile(
    path,
    (text) => texts.push(text),
    () => undefined,
  );
  writeFileSync(path, 'two');
  vi.advanceTimersByTime(configLookMs);
  expect(texts).toEqual(['one', 'two']);
  file.close();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

test('follows a mounted ConfigMap, whose folder is a link that Kubernetes replaces', async () => {
  const mount = (name: string, text: string): void => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'config.json'), text);
    symlinkSync(name, join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  mount('..1', 'one');
  symlinkSync('..data/config.json', path);
  const texts: string[] = [];
  const file = new ConfigFile(
    path,
    (text) => texts.push(text),
    () => undefined,
  );
  mount('..2', 'two');
  await until(() => texts.length === 2);
  file.close();
  expect(texts).toEqual(['one', 'two']);
});

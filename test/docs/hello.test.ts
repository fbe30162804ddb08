/** examples/hello is the README's five minutes, and nothing else. */
import { expect, test } from 'vitest';
import { read } from '../house/tree.ts';
import { filesOf } from '../package/readme.ts';
import { readme } from './document.ts';

test.each([...filesOf(readme)])('%s is as the README shows it', (name, content) => {
  // Source files open with what they are for.
  expect(read(`examples/hello/${name}`).replace(/^\/\*\*.*\*\/\n/, '')).toBe(content);
});

test('the README shows the service, its server and its client', () => {
  expect([...filesOf(readme).keys()]).toEqual(['greeter.proto', 'server.ts', 'client.ts']);
});

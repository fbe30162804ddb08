/** examples/hello is the README's five minutes, and nothing else. */
import { expect, test } from 'vitest';
import { read } from '../house/tree.ts';
import { filesOf } from '../package/readme.ts';
import { readme } from './document.ts';

const files = [...filesOf(readme)];

// Of the project's own files tsconfig.json is the one above them.
test.each(files.filter(([name]) => name !== 'tsconfig.json'))(
  '%s is as the README shows it',
  (name, content) => {
    // Source files open with what they are for.
    expect(read(`examples/hello/${name}`).replace(/^\/\*\*.*\*\/\n/, '')).toBe(content);
  },
);

test('the README shows the service, its server and its client', () => {
  expect(files.map(([name]) => name)).toEqual(['tsconfig.json', 'greeter.proto', 'server.ts', 'client.ts']);
});

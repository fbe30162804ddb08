/** Tests that examples/hello contains the quick start of docs/start/quick-start.md, and nothing else. */
import { expect, test } from 'vitest';
import { read } from '../house/tree.ts';
import { filesOf } from '../package/quick-start.ts';
import { pageOf } from './document.ts';

const files = [...filesOf(pageOf('start/quick-start'))];

// tsconfig.json is left out, because the project's own copy extends the file above it.
test.each(files.filter(([name]) => name !== 'tsconfig.json'))(
  '%s is as the quick start shows it',
  (name, content) => {
    // Source files open with a comment about their purpose.
    expect(read(`examples/hello/${name}`).replace(/^\/\*\*.*\*\/\n/, '')).toBe(content);
  },
);

test('the quick start shows the service, its server and its client', () => {
  expect(files.map(([name]) => name)).toEqual(['tsconfig.json', 'greeter.proto', 'server.ts', 'client.ts']);
});

/**
 * Tests the handlers that server.add refuses.
 */
import { describe, expect, test } from 'vitest';
import { HandlerTable } from '../../runtime/server/handlers.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

describe('server.add', () => {
  test.each<[string, (handlers: HandlerTable) => void, RegExp]>([
    ['a service twice', (h) => h.add(EchoDefinition, {}), /has been added already/],
    [
      'a handler that is no function',
      (h) =>
        h.add(
          {
            ...EchoDefinition,
            fullName: 'other',
            methods: { echo: { ...EchoDefinition.methods.echo, name: 'Echo', id: 1 } },
          },
          { echo: 5 },
        ),
      /handler echo is a number/,
    ],
    [
      'a method id that collides',
      (h) => h.add({ ...EchoDefinition, fullName: 'other' }, {}),
      /same method id as test.echo.Echo\/Echo/,
    ],
    [
      'no handlers at all',
      (h) => h.add({ ...EchoDefinition, fullName: 'other', methods: {} }, null as never),
      /must be an object/,
    ],
  ])('refuses %s', (_, add, message) => {
    const handlers = new HandlerTable();
    handlers.add(EchoDefinition, {});
    expect(() => add(handlers)).toThrow(message);
  });
});

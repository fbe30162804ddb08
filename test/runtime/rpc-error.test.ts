/** Status codes and the error class. */
import { describe, expect, test } from 'vitest';
import { errorCode, statusName } from '../../runtime/call/status.ts';
import { Metadata, RpcError, Status } from '../../runtime/index.ts';

test('codes have the numbers of gRPC', () => {
  expect(Object.values(Status)).toEqual(Array.from({ length: 17 }, (_, i) => i));
  expect(statusName(Status.UNAVAILABLE)).toBe('UNAVAILABLE');
  expect(statusName(99)).toBe('UNKNOWN');
});

test.each([0, 17, -1, 1.5, Number.NaN])('%d is no error code of a peer: UNKNOWN', (code) => {
  expect(errorCode(code)).toBe(Status.UNKNOWN);
});

describe('RpcError', () => {
  test('says its code name, keeps the bare text, metadata and cause', () => {
    const cause = new Error('why');
    const error = new RpcError(Status.NOT_FOUND, 'no such key', {
      metadata: new Metadata({ k: 'v' }),
      cause,
      sent: 'yes',
    });
    expect(error.message).toBe('NOT_FOUND: no such key');
    expect(error).toMatchObject({
      name: 'RpcError',
      code: 5,
      codeName: 'NOT_FOUND',
      rawMessage: 'no such key',
      sent: 'yes',
    });
    expect(error.metadata.get('k')).toBe('v');
    expect(error.cause).toBe(cause);
  });

  test('has sent: maybe and empty metadata by default', () => {
    const error = new RpcError(Status.ABORTED, '');
    expect(error.sent).toBe('maybe');
    expect(error.metadata.size).toBe(0);
    expect('cause' in error).toBe(false);
  });

  test('from() keeps an RpcError, and wraps the rest with the original as cause', () => {
    const known = new RpcError(Status.ABORTED, 'x');
    expect(RpcError.from(known)).toBe(known);
    const aborted = RpcError.from(new DOMException('stop', 'AbortError'));
    expect(aborted.code).toBe(Status.CANCELLED);
    const plain = new Error('broken');
    expect(RpcError.from(plain)).toMatchObject({ code: Status.UNKNOWN, rawMessage: 'broken', cause: plain });
    expect(RpcError.from('text', Status.INTERNAL)).toMatchObject({
      code: Status.INTERNAL,
      rawMessage: 'text',
    });
  });

  test('instanceof goes by shape, so that two copies of the package understand each other', () => {
    const foreign = Object.assign(new Error('NOT_FOUND: x'), {
      name: 'RpcError',
      code: 5,
      codeName: 'NOT_FOUND',
      rawMessage: 'x',
      sent: 'yes',
    });
    expect(foreign).toBeInstanceOf(RpcError);
    for (const other of [new Error('x'), { name: 'RpcError', code: 5 }, null, undefined, 5]) {
      expect(other instanceof RpcError).toBe(false);
    }
  });
});

describe('a subclass', () => {
  class Refused extends RpcError {}

  test('is an RpcError, but other RpcErrors are none of its own', () => {
    expect(new Refused(Status.ABORTED, 'x')).toBeInstanceOf(RpcError);
    expect(new Refused(Status.ABORTED, 'x')).toBeInstanceOf(Refused);
    expect(new RpcError(Status.ABORTED, 'x') instanceof Refused).toBe(false);
  });
});

test('from() knows both reasons of the signals that Node makes', () => {
  expect(RpcError.from(new DOMException('late', 'TimeoutError')).code).toBe(Status.DEADLINE_EXCEEDED);
});

/** Tests status codes and the error class. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { CodecError } from '../../runtime/codec/error.ts';
import { errorCode, statusName } from '../../runtime/core/errors/status.ts';
import { Metadata, type MetadataInit, RpcError, Status } from '../../runtime/index.ts';

test('codes have the numbers of gRPC', () => {
  expect(Object.values(Status)).toEqual(Array.from({ length: 17 }, (_, i) => i));
  expect(statusName(Status.UNAVAILABLE)).toBe('UNAVAILABLE');
  expect(statusName(99)).toBe('UNKNOWN');
});

test.each([0, 17, -1, 1.5, Number.NaN])('%d is not a valid error code of a peer: UNKNOWN', (code) => {
  expect(errorCode(code)).toBe(Status.UNKNOWN);
});

/** Makes an error as Node's functions do. */
function abortError(cause: unknown): Error {
  const error = new Error('The operation was aborted', { cause });
  error.name = 'AbortError';
  return error;
}
const abortSignalTimeout = (): Error => new DOMException('late', 'TimeoutError');
function circular(): Error {
  const error = abortError(undefined);
  error.cause = error;
  return error;
}
function chain(length: number): Error {
  let error = abortError(undefined);
  for (let i = 0; i < length; ++i) error = abortError(error);
  return error;
}

describe('RpcError', () => {
  test('contains its code name, and keeps the bare text, metadata and cause', () => {
    const cause = new Error('why');
    const error = new RpcError(Status.NOT_FOUND, 'no such key', {
      trailer: new Metadata({ k: 'v' }),
      cause,
      processed: 'yes',
    });
    expect(error.message).toBe('NOT_FOUND: no such key');
    expect(error).toMatchObject({
      name: 'RpcError',
      code: 5,
      codeName: 'NOT_FOUND',
      rawMessage: 'no such key',
      processed: 'yes',
    });
    expect(error.trailer.get('k')).toBe('v');
    expect(error.cause).toBe(cause);
  });

  test('accepts the same metadata as calls', () => {
    const metadata = new Metadata({ a: '1' });
    const given = (init: MetadataInit) => new RpcError(Status.ABORTED, '', { trailer: init }).trailer;
    expect(given(metadata)).toBe(metadata);
    expect([given({ a: '1' }), given([['A', '1']])]).toEqual([metadata, metadata]);
    expect([...given({ a: ['1', '2'] })]).toEqual([
      ['a', '1'],
      ['a', '2'],
    ]);
    expect(() => given({ 'a-bin': 'text' })).toThrow(/a-bin: a -bin key takes a Uint8Array/);
  });

  test('has processed: maybe and empty metadata by default', () => {
    const error = new RpcError(Status.ABORTED, '');
    expect(error.processed).toBe('maybe');
    expect(error.trailer.size).toBe(0);
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

  test.each<[string, () => unknown, number]>([
    ['that of a deadline', () => abortError(new RpcError(Status.DEADLINE_EXCEEDED, 'late')), 4],
    ['that of a handler whose caller is gone', () => abortError(new RpcError(Status.CANCELLED, 'gone')), 1],
    ['a timeout', () => abortError(new DOMException('late', 'TimeoutError')), 4],
    ['an abort of an abort, for a timeout', () => abortError(abortError(abortSignalTimeout())), 4],
    ['nothing', () => abortError(undefined), 1],
    ['a text', () => abortError('I changed my mind'), 1],
    ['itself', () => circular(), 1],
    ['a thousand causes', () => chain(1000), 1],
  ])('from() asks for the cause of an AbortError: %s', (_, make, code) => {
    const error = make();
    expect(RpcError.from(error)).toMatchObject({ code, cause: error });
  });

  test('from() does not treat the cause of another error as the error', () => {
    const wrapped = new Error('no profile', { cause: new RpcError(Status.NOT_FOUND, 'no such user') });
    expect(RpcError.from(wrapped)).toMatchObject({ code: Status.UNKNOWN, rawMessage: 'no profile' });
  });

  test('a handler whose deadline has passed gives the same error as its caller', async () => {
    const signal = AbortSignal.timeout(1);
    const error: unknown = await sleep(60_000, undefined, { signal }).catch((thrown: unknown) => thrown);
    expect((error as Error).name).toBe('AbortError');
    expect(RpcError.from(error).code).toBe(Status.DEADLINE_EXCEEDED);
  });

  test('JSON.stringify contains what a log needs, including trailer and details', () => {
    const metadata = new Metadata([
      ['constructor', 'a'],
      ['k', 'v'],
      ['k', 'w'],
      ['b-bin', new Uint8Array([1, 2, 255])],
    ]);
    const details = [{ type: 'a.B', value: new Uint8Array([1]) }];
    const cause = new Error('mine');
    const error = new RpcError(Status.NOT_FOUND, 'gone', {
      trailer: metadata,
      details,
      processed: 'yes',
      cause,
    });
    expect(JSON.parse(JSON.stringify({ error }))).toEqual({
      error: {
        name: 'RpcError',
        codeName: 'NOT_FOUND',
        code: 5,
        message: 'gone',
        processed: 'yes',
        trailer: { constructor: ['a'], k: ['v', 'w'], 'b-bin': ['AQL/'] },
        details: [{ type: 'a.B', value: 'AQ==' }],
      },
    });
  });

  test.each([
    ['metadata', 'trailer'],
    ['sent', 'processed'],
    ['detail', 'details'],
  ])('an option %s is refused: %s was meant', (name, meant) => {
    const text = `new RpcError: there is no option ${name}; did you mean ${meant}?`;
    expect(() => new RpcError(Status.ABORTED, 'x', { [name]: 'yes' })).toThrow(new TypeError(text));
  });

  test('processed is one of its three words', () => {
    const options = { processed: 'certainly' as 'yes' };
    expect(() => new RpcError(Status.ABORTED, 'x', options)).toThrow(
      /processed: certainly is not allowed; use one of no, maybe, yes/,
    );
  });
});

describe('instanceof', () => {
  test('recognizes an error of another copy of the package', async () => {
    vi.resetModules();
    const other = await import('../../runtime/index.ts');
    const otherCodec = await import('../../runtime/codec/error.ts');
    expect(other.RpcError).not.toBe(RpcError);
    expect(new other.RpcError(Status.ABORTED, 'x')).toBeInstanceOf(RpcError);
    expect(new RpcError(Status.ABORTED, 'x')).toBeInstanceOf(other.RpcError);
    expect(new CodecError('a.B', 'x')).toBeInstanceOf(otherCodec.CodecError);
    expect(new otherCodec.CodecError('a.B', 'x')).toBeInstanceOf(CodecError);
    expect(new CodecError('a.B', 'x')).not.toBeInstanceOf(other.RpcError);
  });

  test('recognizes nothing else', () => {
    const like = Object.assign(new Error('NOT_FOUND: x'), {
      name: 'RpcError',
      code: 5,
      codeName: 'NOT_FOUND',
    });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const other of [new Error('x'), like, { name: 'RpcError', code: 5 }, proxy, null, undefined, 5]) {
      expect(other instanceof RpcError).toBe(false);
      expect(other instanceof CodecError).toBe(false);
    }
  });
});

describe('a subclass', () => {
  class Refused extends RpcError {
    override name = 'Refused';
  }

  test('is an RpcError, whatever its name, but other RpcErrors are not instances of it', () => {
    expect(new Refused(Status.ABORTED, 'x')).toBeInstanceOf(RpcError);
    expect(new Refused(Status.ABORTED, 'x')).toBeInstanceOf(Refused);
    expect(new RpcError(Status.ABORTED, 'x') instanceof Refused).toBe(false);
  });
});

test('from() knows both reasons of the signals that Node makes', () => {
  expect(RpcError.from(new DOMException('late', 'TimeoutError')).code).toBe(Status.DEADLINE_EXCEEDED);
});

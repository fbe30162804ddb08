/**
 * Converts metadata of grpc-js to ours.
 */
import { Metadata as GrpcMetadata } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { fromGrpc } from '../../runtime/adapters/grpc/client-metadata.ts';

test('metadata of a gRPC server is not limited to the size that this package allows', () => {
  const received = new GrpcMetadata();
  for (let i = 0; i < 100; ++i) received.add(`x-${i}`, 'v');
  received.add('grpc-message', 'of gRPC itself');
  received.add('bytes-bin', Buffer.from([1, 2]));
  const metadata = fromGrpc(received);
  expect([metadata.size, metadata.get('x-99'), metadata.get('bytes-bin')]).toEqual([
    101,
    'v',
    Buffer.from([1, 2]),
  ]);
});

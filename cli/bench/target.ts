/** What `rdma-rpc bench` sends its calls to: a server of ours over channels, or one of gRPC over clients of grpc-js. Both look the same from load.ts. */

import type { ChannelOptions } from '../../runtime/client/channel-options.ts';
import type { Channel } from '../../runtime/client/channel-type.ts';
import type { ServiceDefinition } from '../../runtime/codec/types.ts';
import type { MetadataValue } from '../../runtime/core/metadata.ts';
import type { Stats } from '../../runtime/native.ts';
import type { Reflection } from '../server/schema/reflection-client.ts';

export interface TargetOptions {
  readonly address: string;
  readonly connections: number;
  readonly timeoutMs: number;
  readonly security?: Pick<ChannelOptions, 'tls' | 'credentials' | 'security'>;
  /** Undefined: what suits. */
  readonly fabric: 'shm' | 'shm-fd' | 'verbs' | 'tcp' | undefined;
}

/** A call of any kind; a stream of answers for methods that have one. */
export type AnyCall = (
  request: unknown,
  options: { readonly metadata: readonly [string, MetadataValue][] },
) => Promise<{ readonly byteLength: number }> | AsyncIterable<{ readonly byteLength: number }>;

export interface Target {
  readonly reflection: Reflection;
  /** How its bytes travel, in a few words. */
  readonly transport: {
    readonly protocol: 'rdma-rpc' | 'grpc';
    readonly fabric?: string;
    readonly device?: string;
  };
  /** The method called `call` of that service, once for each connection. */
  calls(service: ServiceDefinition): AnyCall[];
  /** Of this process' native layers; undefined where the calls are not theirs. */
  stats(): Stats | undefined;
  close(): Promise<void>;
}

/** Resolves when all connections stand. An address that is none throws a TypeError. */
export async function openChannels({
  address,
  connections,
  timeoutMs,
  fabric,
  security,
}: TargetOptions): Promise<Target> {
  const [{ createChannel }, { createClient }, { stats }, { messageBytes }, { channelReflection }] =
    await Promise.all([
      import('../../runtime/client/channel.ts'),
      import('../../runtime/client/client.ts'),
      import('../../runtime/control/configure.ts'),
      import('../../runtime/limits.ts'),
      import('../server/schema/remote-schema.ts'),
    ]);
  const options = {
    connectTimeoutMs: timeoutMs,
    timeoutMs,
    messageMaxBytes: messageBytes.max,
    log: () => undefined,
    ...security,
    ...(fabric === undefined ? {} : { fabric }),
  };
  const channels: Channel[] = Array.from({ length: connections }, () => createChannel(address, options));
  const close = async (): Promise<void> => {
    await Promise.all(channels.map((channel) => channel.close()));
  };
  try {
    await Promise.all(channels.map((channel) => channel.ready()));
  } catch (error) {
    await close();
    throw error;
  }
  const { session } = channels[0]!;
  return {
    reflection: channelReflection(channels[0]!),
    transport: {
      protocol: 'rdma-rpc',
      ...(session === undefined ? {} : { fabric: session.fabric, device: session.device }),
    },
    calls: (service) =>
      channels.map((channel) => (createClient(service, channel) as unknown as { call: AnyCall }).call),
    stats: () => stats(),
    close,
  };
}

/** The same over gRPC, without TLS. */
export async function openGrpc({ address, connections, timeoutMs }: TargetOptions): Promise<Target> {
  const { Client, credentials } = await import('@grpc/grpc-js').catch((cause: unknown) => {
    throw new Error('--grpc needs the package @grpc/grpc-js: npm install --save-dev @grpc/grpc-js', {
      cause,
    });
  });
  const [
    { createGrpcClient },
    { RpcError },
    { Status },
    { ServerReflectionDefinition },
    { alphaReflection, eitherReflection },
  ] = await Promise.all([
    import('../../runtime/grpc/client.ts'),
    import('../../runtime/core/errors/rpc-error.ts'),
    import('../../runtime/core/errors/status.ts'),
    import('../../runtime/services/gen/grpc/reflection/v1/reflection.rdma.ts'),
    import('./grpc-reflection.ts'),
  ]);
  const options = {
    // Otherwise clients of one address share a connection.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_receive_message_length': -1,
    'grpc.max_send_message_length': -1,
  };
  const clients = Array.from(
    { length: connections },
    () => new Client(address, credentials.createInsecure(), options),
  );
  const close = async (): Promise<void> => {
    for (const client of clients) client.close();
  };
  const deadline = Date.now() + timeoutMs;
  const ready = clients.map(
    (client) =>
      new Promise<void>((resolve, reject) => {
        client.waitForReady(deadline, (error) => (error === undefined ? resolve() : reject(error)));
      }),
  );
  try {
    await Promise.all(ready);
  } catch (cause) {
    await close();
    throw new RpcError(
      Status.UNAVAILABLE,
      `no gRPC server without TLS answers at ${address} within ${timeoutMs} ms (--timeout)`,
      { processed: 'no', cause },
    );
  }
  const defaults = { '*': { timeoutMs } };
  const asks = [ServerReflectionDefinition, alphaReflection].map(
    (each) => createGrpcClient(each, clients[0]!, defaults).serverReflectionInfo,
  );
  const serverReflectionInfo = eitherReflection(asks[0]!, asks[1]!);
  return {
    reflection: { serverReflectionInfo, remedy: 'give --proto or --protoset' },
    transport: { protocol: 'grpc' },
    calls: (service) =>
      clients.map(
        (client) => (createGrpcClient(service, client, defaults) as unknown as { call: AnyCall }).call,
      ),
    stats: () => undefined,
    close,
  };
}

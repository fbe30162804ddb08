/**
 * The target of `rdma-rpc bench`: a server of ours, reached over channels, or a gRPC server, reached over
 * clients of grpc-js. load.ts uses both in the same way.
 */

import type { ChannelOptions } from '../../runtime/client/channel-options.ts';
import type { Channel } from '../../runtime/client/channel-type.ts';
import type { ServiceDefinition } from '../../runtime/codec/types.ts';
import type { MetadataValue } from '../../runtime/core/metadata.ts';
import type { Fabric } from '../../runtime/fabrics.ts';
import type { Stats } from '../../runtime/native/native.ts';
import type { Reflection } from '../server/schema/reflection-client.ts';

export interface TargetOptions {
  readonly address: string;
  readonly connections: number;
  readonly timeoutMs: number;
  readonly security?: Pick<ChannelOptions, 'tls' | 'credentials' | 'security'>;
  /** Undefined chooses automatically. */
  readonly fabric: Fabric | undefined;
}

/** A call of any kind. It returns a stream of responses for methods that have such a stream. */
export type AnyCall = (
  request: unknown,
  options: { readonly metadata: readonly [string, MetadataValue][] },
) => Promise<{ readonly byteLength: number }> | AsyncIterable<{ readonly byteLength: number }>;

export interface Target {
  readonly reflection: Reflection;
  /** The way in which the bytes of the calls are transferred, in a few words. */
  readonly transport: {
    readonly protocol: 'rdma-rpc' | 'grpc';
    readonly fabric?: string;
    readonly device?: string;
  };
  /** Returns the method named `call` of `service`, once for each connection. */
  calls(service: ServiceDefinition): AnyCall[];
  /** Returns the counters of this process's native layers, or undefined when the calls do not use them. */
  stats(): Stats | undefined;
  close(): Promise<void>;
}

/** Resolves when all connections are established. Throws a TypeError for an invalid address. */
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

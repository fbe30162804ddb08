/**
 * The declarations of a server, by reflection. The commands that list, describe and call use this file.
 */

import type { Channel } from '../../../runtime/client/channel-type.ts';
import { createClient } from '../../../runtime/client/client.ts';
import { ServerReflectionDefinition } from '../../../runtime/services/gen/grpc/reflection/v1/reflection.rdma.ts';
import { filesOf, type Reflection, serviceNames } from './reflection-client.ts';
import { registryOf } from './registry.ts';
import { withExtensions } from './remote-extensions.ts';
import type { Schema } from './schema.ts';

/** Returns reflection over one of our channels. */
export function channelReflection(channel: Channel): Reflection {
  const { serverReflectionInfo } = createClient(ServerReflectionDefinition, channel);
  const remedy = 'addReflection(server) of rdma-rpc/reflection adds it, or give --proto or --protoset';
  return { serverReflectionInfo, remedy };
}

export function remoteSchema(reflection: Reflection): Schema {
  return {
    owner: 'the server',
    services: () => serviceNames(reflection),
    async declaring(symbol, extensions) {
      const files = await filesOf(reflection, symbol);
      if (files === undefined) return undefined;
      return registryOf(extensions === undefined ? files : await withExtensions(reflection, files));
    },
  };
}

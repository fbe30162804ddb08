/** What a server declares, by its reflection. Used by the commands that list, describe and call. */
import type { Channel } from '../../../runtime/client/channel-type.ts';
import { filesOf, serviceNames } from './reflection-client.ts';
import { registryOf } from './registry.ts';
import { withExtensions } from './remote-extensions.ts';
import type { Schema } from './schema.ts';

export function remoteSchema(channel: Channel): Schema {
  return {
    owner: 'the server',
    services: () => serviceNames(channel),
    async declaring(symbol, extensions) {
      const files = await filesOf(channel, symbol);
      if (files === undefined) return undefined;
      return registryOf(extensions === undefined ? files : await withExtensions(channel, files));
    },
  };
}

/**
 * ioredis over sockets, by its Connector. iovalkey has the same interface. scripted-redis.ts is the other
 * end.
 */
import { AbstractConnector, Redis } from 'ioredis';
import { connect } from 'rdma-rpc/socket';
import { scriptedRedis } from './scripted-redis.ts';
import { alone, serve, stop } from './serve.ts';

/** Returns a class whose connections go to `address`. */
export function connectorTo(address: string): typeof AbstractConnector {
  return class extends AbstractConnector {
    constructor() {
      super(1_000);
    }

    connect(): Promise<never> {
      const socket = connect(address);
      this.stream = socket as never;
      return Promise.resolve(socket as never);
    }
  } as never;
}

export async function run(): Promise<Record<string, unknown>> {
  const { server, address } = await serve(scriptedRedis);
  const redis = new Redis({ Connector: connectorTo(address) as never, enableReadyCheck: false });
  const set = await redis.set('key', 'value');
  const get = await redis.get('key');
  const missing = await redis.get('missing');
  const pipelined = await Promise.all(Array.from({ length: 100 }, (_, i) => redis.set(`k${i}`, String(i))));
  redis.disconnect();
  await stop(server);
  return { set, get, missing, pipelined: pipelined.length };
}

await alone(import.meta.url, run);

/** ioredis and iovalkey over sockets, by their Connector. scripted-redis.ts is the other end. */
import { AbstractConnector, Redis } from 'ioredis';
import { Redis as Valkey } from 'iovalkey';
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

async function use(redis: Redis | Valkey): Promise<Record<string, unknown>> {
  const set = await redis.set('key', 'value');
  const get = await redis.get('key');
  const missing = await redis.get('missing');
  const pipelined = await Promise.all(Array.from({ length: 100 }, (_, i) => redis.set(`k${i}`, String(i))));
  redis.disconnect();
  return { set, get, missing, pipelined: pipelined.length };
}

export async function run(): Promise<Record<string, unknown>> {
  const { server, address } = await serve(scriptedRedis);
  const options = { Connector: connectorTo(address) as never, enableReadyCheck: false };
  const ioredis = await use(new Redis(options));
  const iovalkey = await use(new Valkey(options));
  await stop(server);
  return { ioredis, iovalkey };
}

await alone(import.meta.url, run);

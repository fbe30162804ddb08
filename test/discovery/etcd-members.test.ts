/**
 * Tests a registration in an etcd of two members, of which one ends or hangs. Its lease is renewed and
 * revoked through the other member. The members are scripted, and share one lease.
 */
import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import { type Registration, register } from 'rdma-rpc/etcd';
import { beforeEach, expect, test } from 'vitest';
import { KVDefinition, LeaseDefinition } from '../../runtime/discovery/etcd/gen/rpc.rdma.ts';
import { until } from '../outcomes.ts';
import { afterwards, serve } from './bed.ts';

interface Call {
  readonly request: unknown;
  getDeadline(): Date | number;
}
type Reply = (error: null, response: unknown) => void;
interface RenewalStream extends Pick<Call, 'getDeadline'> {
  write(response: unknown): void;
  end(): void;
  on(event: string, listener: () => void): void;
}

const id = 7n;

/** A member that grants, renews and revokes the lease `id`. */
class ScriptedMember {
  /** The time limits of its requests, in ms. */
  readonly limitsMs: number[] = [];
  renewals = 0;
  revocations = 0;
  hangs = false;
  readonly #server = new GrpcServer();
  #port = 0;

  async start(): Promise<this> {
    const unary =
      (response: object, then: () => unknown = () => undefined) =>
      (call: Call, reply: Reply): void => {
        this.#note(call);
        if (this.hangs) return;
        then();
        reply(null, response);
      };
    this.#server.addService(KVDefinition.methods, {
      range: unary({ count: 1n }) as never,
      put: unary({}) as never,
    });
    this.#server.addService(LeaseDefinition.methods, {
      leaseGrant: unary({ id, ttl: 2n }) as never,
      leaseRevoke: unary({}, () => ++this.revocations) as never,
      leaseKeepAlive: ((stream: RenewalStream) => {
        this.#note(stream);
        stream.on('error', () => undefined);
        stream.on('data', () => {
          if (this.hangs) return;
          ++this.renewals;
          stream.write({ id, ttl: 2n });
        });
        stream.on('end', () => this.hangs || stream.end());
      }) as never,
    });
    this.#port = await new Promise<number>((resolve, reject) =>
      this.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
        error ? reject(error) : resolve(port),
      ),
    );
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  #note(call: Pick<Call, 'getDeadline'>): void {
    this.limitsMs.push(Number(call.getDeadline()) - Date.now());
  }
}

let first: ScriptedMember;
let second: ScriptedMember;
beforeEach(async () => {
  first = await new ScriptedMember().start();
  second = await new ScriptedMember().start();
  afterwards(() => first.stop());
  afterwards(() => second.stop());
});

async function registered(ttlMs: number): Promise<Registration> {
  const { server, address } = await serve();
  const endpoints = [first.url, second.url];
  const registration = register(server, { endpoints, service: 's', address, ttlMs, log: () => undefined });
  await registration.ready();
  return registration;
}

/** Returns the member that has granted the lease, and the other member. */
const inUse = (): readonly [ScriptedMember, ScriptedMember] =>
  first.limitsMs.length > 0 ? [first, second] : [second, first];

test.each<[string, (member: ScriptedMember) => void]>([
  ['has ended', (member) => member.stop()],
  [
    'hangs',
    (member) => {
      member.hangs = true;
    },
  ],
])('a server leaves the list through another member when its member %s', async (_, harm) => {
  const registration = await registered(3_600_000);
  const [used, other] = inUse();
  harm(used);
  await registration.close();
  expect(other.revocations).toBe(1);
  expect(registration.registered).toBe(false);
});

test('one request takes at most half of the time to live, so that the next member can still renew', async () => {
  const registration = await registered(4000);
  const [used, other] = inUse();
  const limitsMs = [...used.limitsMs, ...other.limitsMs];
  expect(limitsMs.length).toBeGreaterThanOrEqual(3);
  for (const limitMs of limitsMs) expect(limitMs).toBeLessThanOrEqual(2000);
  used.hangs = true;
  await until(() => other.renewals > 0);
  await registration.close();
});

/**
 * What `sealed` promises, on a wire where others can look and write: that who reads it sees nothing of a call
 * (but all of one that is not sealed), and that who forges packets changes nothing that an application sees,
 * and ends no more than that session. A forged packet has had its effect when that session is gone.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type SecurityLevel, type Server } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Authority, pems } from '../security/certificates.ts';
import {
  clientDevice,
  endAll,
  over,
  pattern,
  type Reached,
  reach,
  same,
  serverDevice,
  until,
} from './pair.ts';
import { addresses, type Forged, Forger, Opcode, type Packet, WireTap, whyNoTap } from './wire-tap.ts';

const why = whyNoTap();
const whyNotRoce = process.env['RDMA_VM'] === 'rxe' ? why : 'packets are only made for RoCE';

const authority = new Authority();
const both = { ca: authority.ca, ...pems(authority.issue({ addresses: ['127.0.0.1'] })) };

const servers: Server[] = [];
/** Programs beside the test. */
const open: { close(): Promise<void> }[] = [];
let server: Server;
let address = '';
/** Sessions that clients have got. */
let accepted = 0;
/** Handlers that began. */
let log: EchoLog;
beforeEach(async () => {
  log = { started: 0, aborted: [] };
  accepted = 0;
  server = createServer({
    ...over(serverDevice),
    tls: both,
    log: () => undefined,
    onSession: (session) => {
      if (session.accepted) ++accepted;
    },
  });
  servers.push(server.add(EchoDefinition, echoHandlers(log)));
  address = await server.listen('127.0.0.1:0');
});
afterEach(async (context) => {
  for (const each of open.splice(0)) await each.close();
  await endAll(context);
  for (const server of servers.splice(0)) await server.shutdown({ graceMs: 0 });
});

const reachBy = (level: SecurityLevel): Reached =>
  reach(address, { ...over(clientDevice), tls: both, security: { require: level } });

test('a sealed session: small and large calls are answered as ever', async () => {
  const { channel, client } = reachBy('sealed');
  for (const [number, bytes] of [0, 100, 8_000, 300_000, 3_000_000].entries()) {
    const payload = pattern(bytes, number);
    const answer = await client.echo({ number, payload });
    expect([answer.number, same(answer.payload, payload)]).toEqual([number, true]);
  }
  expect(channel.session).toMatchObject({ fabric: 'verbs', device: clientDevice, security: 'sealed' });
});

describe('who reads the wire', () => {
  beforeEach(({ skip }) => skip(why !== '', why));

  test('sees small and large calls of a session that is not sealed, and nothing of one that is', async () => {
    const tap = await WireTap.open();
    open.push(tap);
    const marked = async (level: SecurityLevel, marker: string): Promise<void> => {
      const { client } = reachBy(level);
      const filled = (bytes: number) => Buffer.alloc(bytes, `${marker}-large `);
      await client.echo({ text: `${marker}-small` });
      await client.echo({ payload: filled(300_000) });
    };
    await marked('sealed', 'secret');
    await marked('bound', 'public');
    // What came before has been seen by then.
    await until(
      () => tap.saw('public-large'),
      (seen) => seen,
    );
    const seen = ['public-small', 'public-large', 'secret-small', 'secret-large', 'secret'].map((text) =>
      tap.saw(text),
    );
    expect(seen).toEqual([true, true, false, false, false]);
  });
});

describe('who forges packets, with numbers that are right,', () => {
  beforeEach(({ skip }) => skip(whyNotRoce !== '', whyNotRoce));

  /** A session of which all is known that passes on the wire, and another that must not notice anything. */
  async function watched(level: SecurityLevel, from: 'client' | 'server') {
    const other = reachBy(level);
    await other.client.echo({});
    const tap = await WireTap.open();
    open.push(tap);
    const forger = await Forger.open(from);
    open.push(forger);
    const one = reachBy(level);
    const text = 'as it was meant';
    for (let number = 0; number < 4; ++number) await one.client.echo({ number, text });
    const sent = (): Packet[] =>
      tap.packets.filter(
        ({ source, port, isRequest }) => source === addresses[from] && port !== forger.port && isRequest,
      );
    // The last ones are those of this session.
    await until(
      () => sent().filter(({ opcode }) => opcode === Opcode.sendOnly).length,
      (count) => count >= 4,
    );
    expect(tap.packets.filter(({ sound }) => !sound)).toEqual([]);
    const queuePair = sent().at(-1)!.queuePair;
    expect([accepted, server.sessionCount]).toEqual([2, 2]);
    return {
      ...one,
      template: sent().findLast(({ opcode }) => opcode === Opcode.sendOnly)!,
      /** Sends it as the next packet of that side, until it has had its effect. */
      async forge(packet: Omit<Forged, 'queuePair' | 'sequence'>, effect: () => boolean) {
        let forged = 0;
        await until(
          () => {
            // One at a time: what is on its way when it has had its effect would meet other queue pairs.
            if (forged === tap.packets.filter(({ port }) => port === forger.port).length) {
              const last = sent().findLast((each) => each.queuePair === queuePair)!;
              forger.send({ ...packet, queuePair, sequence: last.sequence + 1 });
              ++forged;
            }
            return effect();
          },
          (had) => had,
        );
      },
      isGone: () => accepted > 2 || server.sessionCount < 2,
      async end() {
        // What was sent was as devices send it.
        expect(tap.packets.filter(({ sound }) => !sound)).toEqual([]);
        // The other session works, and nobody had to connect anew but the one.
        await other.client.echo({ text });
        expect(accepted).toBeLessThanOrEqual(3);
      },
    };
  }

  test.each([
    ['a packet of before', false],
    ['one of its own', true],
  ])('ends a sealed session, and makes no call, with %s', async (_, own) => {
    const { template, forge, isGone, end, client } = await watched('sealed', 'client');
    const before = log.started;
    const payload = own ? randomBytes(template.payload.byteLength) : template.payload;
    await forge({ ...template, payload }, isGone);
    expect(log.started).toBe(before);
    expect((await client.echo({ number: 9 })).number).toBe(9);
    await end();
  });
});

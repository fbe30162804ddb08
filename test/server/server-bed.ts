/**
 * Makes a server session on a scripted native side, for the tests of how it handles requests.
 */

import { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { KnownPeer } from '../../runtime/core/peer.ts';
import { type Handlers, type Interceptor, Status } from '../../runtime/index.ts';
import { EvKind, notRun } from '../../runtime/native/native.ts';
import { HandlerTable } from '../../runtime/server/handlers.ts';
import { Load } from '../../runtime/server/load.ts';
import { ServerSession } from '../../runtime/server/server-session.ts';
import type { FakeEvent } from '../runtime/fake-events.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { EchoDefinition, EchoMessage } from '../runtime/gen/echo.rdma.ts';

export type EchoHandlers = Partial<Handlers<typeof EchoDefinition>>;

export interface BedOptions {
  readonly slots?: number;
  readonly messageMaxBytes?: number;
  readonly handlersMax?: number;
  readonly interceptors?: readonly Interceptor[];
}

export class ServerBed {
  readonly native: FakeNative;
  readonly session: ServerSession;
  readonly handlerErrors: [unknown, string][] = [];
  readonly down: string[] = [];

  constructor(handlers: EchoHandlers, options: BedOptions = {}) {
    const { slots = 64, messageMaxBytes = 1e6, handlersMax = 100, interceptors = [] } = options;
    this.native = new FakeNative({ slots });
    const context = new FabricContext('sim', this.native);
    const registry = new HandlerTable();
    registry.add(EchoDefinition, handlers, interceptors);
    const number = context.sessions.create({
      role: 'server',
      inflightMax: 8,
      messageMaxBytes: 1e6,
      peerMessageMaxBytes: 1e6,
    });
    const target = { session: number, eagerBytes: 8192, messageMaxBytes };
    this.session = new ServerSession(
      context,
      target,
      { peer: new KnownPeer('alice'), account: undefined },
      registry,
      new Load(handlersMax),
      {
        onHandlerError: (error, method) => void this.handlerErrors.push([error, method]),
        onSessionDown: (_, reason) => void this.down.push(reason),
      },
    );
  }

  /** Returns the answers, oldest first. */
  answers() {
    return this.native.submitted.map((sent) => ({
      call: sent.call,
      status: sent.method & 0xff,
      notRun: (sent.method & notRun) !== 0,
      text:
        (sent.method & 0xff) === Status.OK
          ? EchoMessage.decode(sent.message).text
          : Buffer.from(sent.message).toString(),
      metadata: sent.metadata,
    }));
  }
}

export const request = (event: Partial<FakeEvent> = {}): FakeEvent => ({
  kind: EvKind.request,
  call: 70001,
  method: EchoDefinition.methods.echo.id | 0,
  message: EchoMessage.encode({ text: 'hi' }),
  ...event,
});

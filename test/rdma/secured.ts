/**
 * Opens a server of this process with TLS on one device, and channels on the other device that require a
 * security level. This file is for tests of attacks on a wire that others can read and write.
 */
import { createServer, type Handlers, type SecurityLevel, type Server } from 'rdma-rpc';
import { afterEach, beforeEach } from 'vitest';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import type { EchoDefinition as Echo } from '../runtime/gen/echo.rdma.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Authority, pems } from '../security/certificates.ts';
import { clientDevice, endAll, over, type Reached, reach, serverDevice } from './pair.ts';

const authority = new Authority();
const both = { ca: authority.ca, ...pems(authority.issue({ addresses: ['127.0.0.1'] })) };

/** The timeout is long, so that a message which a forger holds back is not sent again during the test. */
const verbs = { ackTimeout: 20 };

export interface Secured {
  server: Server;
  /** The number of sessions that clients have made. */
  accepted: number;
  /** The handlers that began. */
  log: EchoLog;
  /** Programs that the test has started; they are ended after the test. */
  readonly beside: { close(): Promise<void> | void }[];
  reachBy(level: SecurityLevel): Reached;
}

/** Starts a server for each test of a file. `handlers` replace the handlers of the service. */
export function secured(handlers: Partial<Handlers<typeof Echo>> = {}): Secured {
  let address = '';
  const it: Secured = {
    // `beforeEach` creates the server.
    server: undefined as unknown as Server,
    accepted: 0,
    log: { started: 0, aborted: [] },
    beside: [],
    reachBy: (level) =>
      reach(address, { ...over(clientDevice, { verbs }), tls: both, security: { require: level } }),
  };
  beforeEach(async () => {
    it.accepted = 0;
    it.log = { started: 0, aborted: [] };
    it.server = createServer({
      ...over(serverDevice, { verbs }),
      tls: both,
      log: () => undefined,
      onSession: (session) => {
        if (session.accepted) ++it.accepted;
      },
    });
    it.server.add(EchoDefinition, { ...echoHandlers(it.log), ...handlers });
    address = await it.server.listen('127.0.0.1:0');
  });
  afterEach(async (context) => {
    for (const each of it.beside.splice(0)) await each.close();
    await endAll(context);
    await it.server.shutdown({ graceMs: 0 });
  });
  return it;
}

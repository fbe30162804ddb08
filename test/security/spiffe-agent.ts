/**
 * Simulates an agent of SPIFFE whose answers a test sets, and workloads that query it by gRPC over a unix
 * socket, like a real agent. All of them end after each test.
 */
import { join } from 'node:path';
import { Server as Agent, type Metadata, ServerCredentials } from '@grpc/grpc-js';
import { createWorkload, type Workload, type WorkloadOptions } from 'rdma-rpc/spiffe';
import { afterEach } from 'vitest';
import {
  SpiffeWorkloadAPIDefinition,
  type X509SVIDInit,
  type X509SVIDResponseInit,
} from '../../runtime/identity/spiffe/gen/workload.rdma.ts';
import type { Issued } from './certificates.ts';
import { ends } from './ends.ts';

export const der = (pem: string): Buffer => Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');

/**
 * Returns an X.509 SVID as a SPIFFE agent sends it. `bundle` is the PEM of the authorities of its trust
 * domain, and `chain` of the authorities between them and the certificate.
 */
export function svidOf(
  spiffeId: string,
  issued: Issued,
  bundle: string,
  ...chain: readonly string[]
): X509SVIDInit {
  return {
    spiffeId,
    x509Svid: Buffer.concat([issued.cert, ...chain].map(der)),
    x509SvidKey: der(issued.key),
    bundle: der(bundle),
  };
}

interface Told {
  write(response: unknown): void;
  end(): void;
}

/** Sends the same answer to every workload, followed by later answers. */
class Scripted {
  now: X509SVIDResponseInit | undefined;
  readonly asked: Metadata[] = [];
  readonly #calls = new Set<Told>();
  readonly #server = new Agent();

  async listen(path: string): Promise<string> {
    this.#server.addService(SpiffeWorkloadAPIDefinition.methods, {
      fetchX509SVID: (call: never) => {
        const stream = call as Told & { metadata: Metadata };
        this.asked.push(stream.metadata);
        this.#calls.add(stream);
        if (this.now !== undefined) stream.write(this.now);
      },
    } as never);
    await new Promise<void>((resolve, reject) =>
      this.#server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    return `unix://${path}`;
  }

  tell(response: X509SVIDResponseInit): void {
    this.now = response;
    for (const call of this.#calls) call.write(response);
  }

  /** Ends the streams of all workloads, like an agent that is about to shut down. */
  end(): void {
    for (const call of this.#calls) call.end();
    this.#calls.clear();
  }

  stop(): void {
    this.#calls.clear();
    this.#server.forceShutdown();
  }
}

const agents: Scripted[] = [];
const workloads: Workload[] = [];
afterEach(async () => {
  for (const workload of workloads.splice(0)) await workload.close();
  for (const agent of agents.splice(0)) agent.stop();
});

export async function agentWith(...svids: X509SVIDInit[]) {
  const agent = new Scripted();
  agents.push(agent);
  if (svids.length > 0) agent.now = { svids };
  return { agent, endpoint: await agent.listen(join(ends.folder, `agent-${agents.length}`)) };
}
export function workloadOf(options: WorkloadOptions) {
  const lines: string[] = [];
  const workload = createWorkload({ log: (line) => lines.push(line), ...options });
  workloads.push(workload);
  return { workload, lines };
}

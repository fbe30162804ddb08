/**
 * The advice about what to do next when `rdma-rpc ping` stops at a step.
 */
import type { StepName } from './steps.ts';

/** The step at which a server was not reached, or a later round trip without an answer. */
export type Stop = StepName | 'sideband' | 'session';

/** The error when the time limit has passed. The reason is then the same for every step. */
export class TooLate extends Error {}

const stopped =
  'its process is stopped (SIGSTOP, a debugger), its event loop is blocked, or another program listens there';

/** Advice by the error code of the system. */
const byCode: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there: start the server, or correct the address and the port',
  ENOENT: 'start the server with this path, or correct the path',
  ENOTFOUND: "correct the name, or add it to this host's DNS or /etc/hosts",
  EAI_AGAIN: 'the DNS server of this host does not answer: look at /etc/resolv.conf',
  EHOSTUNREACH: 'no route leads there: look at ip route, the cable and the firewall',
  ENETUNREACH: 'no route leads there: look at ip route, the cable and the firewall',
  EACCES: "let this user connect: the server's option socket sets mode and group of the file",
};

const late: Readonly<Record<Stop, string>> = {
  resolve: 'the DNS server of this host does not answer: look at /etc/resolv.conf',
  connect: 'the host is down, the address is another one, or a firewall drops the packets',
  tls: `the kernel has accepted the connection, and the server says nothing: ${stopped}`,
  welcome: `the kernel has accepted the connection, and the server says nothing: ${stopped}`,
  attach: 'the server has stopped in the middle of the handshake: look at its log and its event loop',
  fabric:
    'the sideband works and the fabric does not: rdma-rpc links and rdma-rpc doctor on both hosts, or --fabric tcp',
  answer: `the server has stopped in the middle of the handshake: ${stopped}`,
  sideband: `the session is open, and the server says nothing: ${stopped}`,
  session:
    'the sideband answers and the fabric does not: rdma-rpc links and rdma-rpc devices -v on both hosts show the counters',
};

const failed: Readonly<Record<Stop, string>> = {
  resolve: "correct the name, or add it to this host's DNS or /etc/hosts",
  connect: 'look at the address, the route and the firewall',
  tls: "the server's log has its side of the failure",
  welcome: "the server's log has its side of the refusal",
  attach: 'rdma-rpc doctor on both hosts says what each fabric lacks; --fabric NAME tries one alone',
  fabric: 'rdma-rpc doctor on both hosts says what each fabric lacks; --fabric NAME tries one alone',
  answer: "the server's log says why it has ended the session",
  sideband: "the server's log says why it has ended the session",
  session: "the server's log says why it has ended the session",
};

/** Returns a sentence about what to do after this error in this step. */
export function adviceFor(stop: Stop, error: Error): string {
  if (error instanceof TooLate) return late[stop];
  const code = (error as NodeJS.ErrnoException).code;
  return (typeof code === 'string' ? byCode[code] : undefined) ?? failed[stop];
}

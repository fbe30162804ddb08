/**
 * All checks of `rdma-rpc doctor`. Each check comes after the checks on which it depends. Checks change
 * nothing on the machine.
 */
import {
  checkDevices,
  checkFiles,
  checkModules,
  checkMtuMismatch,
  checkPorts,
  checkRdmaCmMode,
} from './check-devices.ts';
import { checkAddon, checkContainer, checkFabrics, checkPolling, checkProcessors } from './check-host.ts';
import { checkHugePages, checkMemlock } from './check-memory.ts';
import { checkNuma } from './check-numa.ts';
import type { Facts } from './facts.ts';
import type { Finding } from './findings.ts';
import type { Machine } from './machine.ts';

const checks: readonly ((machine: Machine, facts: Facts) => Finding[])[] = [
  checkAddon,
  checkFabrics,
  checkDevices,
  checkModules,
  checkFiles,
  checkPorts,
  checkMtuMismatch,
  checkRdmaCmMode,
  checkNuma,
  checkMemlock,
  checkHugePages,
  checkProcessors,
  checkPolling,
  checkContainer,
];

export function examine(machine: Machine, facts: Facts): Finding[] {
  return checks.flatMap((check) => check(machine, facts));
}

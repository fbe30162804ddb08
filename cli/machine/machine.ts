/**
 * What the system says of itself in files (/proc, /sys, /dev), under a root that tests may put elsewhere.
 * Used by `rdma-rpc info` and `doctor`.
 */
import { accessSync, constants, existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Paths are absolute, as programs know them. */
export interface Machine {
  /** Without white space around it; undefined: there is no such file, or it cannot be read. */
  text(path: string): string | undefined;
  /** What a symbolic link says. */
  link(path: string): string | undefined;
  /** Entries of a directory, sorted; none when there is no such directory. */
  names(path: string): readonly string[];
  exists(path: string): boolean;
  /** This process may read and write it. */
  usable(path: string): boolean;
}

function orNot<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

export function machineAt(root = '/'): Machine {
  const at = (path: string): string => join(root, path);
  return {
    text: (path) => orNot(() => readFileSync(at(path), 'utf8').trim()),
    link: (path) => orNot(() => readlinkSync(at(path))),
    names: (path) => orNot(() => readdirSync(at(path)).sort()) ?? [],
    exists: (path) => existsSync(at(path)),
    usable: (path) => orNot(() => accessSync(at(path), constants.R_OK | constants.W_OK) ?? true) === true,
  };
}

/** `/sys/class/infiniband`: what the kernel has, whether programs can use it or not. */
export const kernelDevices = (machine: Machine): readonly string[] => machine.names('/sys/class/infiniband');

/** A number that a file has alone; undefined: none. */
export function numberIn(machine: Machine, path: string): number | undefined {
  const text = machine.text(path);
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
}

/**
 * The system's files (/proc, /sys, /dev), under a root that tests can change. `rdma-rpc info` and `doctor`
 * use this file.
 */
import { accessSync, constants, existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Paths are absolute, as on the real system. */
export interface Machine {
  /**
   * Returns the content without surrounding white space, or undefined when the file does not exist or cannot
   * be read.
   */
  text(path: string): string | undefined;
  /** Returns the target of a symbolic link, or undefined when the path is not a symbolic link. */
  link(path: string): string | undefined;
  /** Returns the sorted entries of a directory; an empty list when it does not exist. */
  names(path: string): readonly string[];
  exists(path: string): boolean;
  /** Returns whether this process may read and write the file. */
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

/** Returns the names of the kernel's RDMA devices, even of those that programs cannot use. */
export const kernelDevices = (machine: Machine): readonly string[] => machine.names('/sys/class/infiniband');

/** Returns the number in a file, or undefined when the file has other content or cannot be read. */
export function numberIn(machine: Machine, path: string): number | undefined {
  const text = machine.text(path);
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
}

/**
 * Replaces the addon's loader with contexts that a test scripts, one for each fabric. This file is for tests
 * in which client and server each have a native side: `vi.mock('../../runtime/native/native.ts', faked)`.
 * `makes()` must be called first, because the scripted side needs the mocked module.
 */
import type { NativeOptions } from '../../runtime/native/native.ts';
import type { FakeNative } from './fake-native.ts';

let make: (() => FakeNative) | undefined;
/** The contexts by fabric. Client and server are in one process, so they share one context. */
export const natives = new Map<string, FakeNative>();
export const native = (fabric: string): FakeNative => natives.get(fabric)!;
export const makes = (of: () => FakeNative): void => {
  make = of;
};

export const faked = async (original: () => Promise<unknown>): Promise<object> => ({
  ...((await original()) as object),
  loadNative: () => ({
    createContext: ({ fabric }: NativeOptions) => {
      const made = make!();
      natives.set(fabric, made);
      return made;
    },
    verbsDevices: () => ({ whyNone: '', whyNoCm: '', memlock: '', devices: [] }),
  }),
});

/**
 * Tests that runtime/native/native.ts declares exactly the exports of the addon, and the scripted native side
 * of the tests has the same members. Each member is compared by name and kind.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { nativeOptions } from '../../runtime/boundary/contexts.ts';
import { loadNative } from '../../runtime/native/native.ts';
import { FakeNative } from '../runtime/fake-native.ts';

/** Returns the members of an interface of runtime/native/native.ts, and whether each is required. */
function declared(name: string): { member: string; optional: boolean }[] {
  const path = fileURLToPath(new URL('../../runtime/native/native.ts', import.meta.url));
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest);
  const found = source.statements.find((each) => ts.isInterfaceDeclaration(each) && each.name.text === name);
  const members = (found as ts.InterfaceDeclaration | undefined)?.members ?? [];
  return members.map((each) => ({
    member: (each.name as ts.Identifier).text,
    optional: each.questionToken !== undefined,
  }));
}

const kindOf = (of: object, member: string): string => {
  const value = (of as Record<string, unknown>)[member];
  return typeof value === 'object' ? `${value?.constructor.name}` : typeof value;
};

const context = declared('NativeContext');

test('the interface is found', () => {
  expect(context.length).toBeGreaterThan(40);
  expect(declared('NativeModule').length).toBeGreaterThan(5);
});

test.each(declared('NativeModule').filter(({ optional }) => !optional))(
  'the addon has $member',
  ({ member }) => {
    expect(kindOf(loadNative(), member)).not.toBe('undefined');
  },
);

test.each(context)('a context and the fake have the same $member', ({ member, optional }) => {
  const real = loadNative().createContext(nativeOptions('sim'));
  try {
    const kind = kindOf(real, member);
    if (!optional) expect(kind).not.toBe('undefined');
    expect(kindOf(new FakeNative(), member)).toBe(kind);
  } finally {
    real.close();
  }
});

test('neither has an undeclared member', () => {
  const real = loadNative().createContext(nativeOptions('sim'));
  const names = [
    ...Object.getOwnPropertyNames(real),
    ...Object.getOwnPropertyNames(Object.getPrototypeOf(real)),
  ];
  real.close();
  const known = new Set([...context.map(({ member }) => member), 'constructor']);
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});

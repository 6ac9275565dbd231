import express from 'express'
import { expect, test } from 'vitest'
import { endpoints } from '../api/endpoints.ts'
import { mount } from './app.ts'

test.each([undefined, '', 'wallet:write'])('an endpoint that declares no scope cannot be mounted: %s', scope => {
  const endpoint = { ...endpoints[0]!, scope: scope as never }
  expect(() => mount(express(), endpoint, {} as never)).toThrow('declares no scope')
})

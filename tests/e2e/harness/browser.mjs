// Chromium, and pages in it that watch for what goes wrong.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

// As root in a container there is no sandbox to be had; the rest keeps the
// browser from talking to anybody but the page's server.
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** The widths that the page is designed for. */
export const WIDTHS = { desktop: 1280, phone: 390 };

/** Starts the browser. */
export function launch() {
  const executablePath = process.env.CHROMIUM ?? PLACES.find((place) => existsSync(place));
  if (!executablePath) {
    throw new Error('there is no Chromium: install it, or set CHROMIUM to the program');
  }
  return chromium.launch({ executablePath, args: FLAGS });
}

/**
 * Opens `address` in a window of its own.
 *
 * Gives the page; `problems`, a list that fills with everything that goes wrong
 * in the page and its workers; `requests`, the addresses it asked for; and `close`.
 */
export async function open(browser, address, { width = WIDTHS.desktop, height, theme = 'light', motion = 'reduce' } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: height ?? (width < 600 ? 844 : 800) },
    colorScheme: theme,
    reducedMotion: motion,
    hasTouch: width < 600,
    locale: 'en-GB',
  });
  const page = await context.newPage();
  const seen = watch(page, new URL(address).origin);
  await page.goto(address, { waitUntil: 'load' });
  return { page, ...seen, close: () => context.close() };
}

function watch(page, origin) {
  const problems = [];
  const requests = [];
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
  page.on('requestfailed', (request) => problems.push(`${request.failure()?.errorText}: ${request.url()}`));
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
  });
  page.on('request', (request) => {
    requests.push(request.url());
    const { protocol, origin: other } = new URL(request.url());
    if (protocol.startsWith('http') && other !== origin) problems.push(`from elsewhere: ${request.url()}`);
  });
  return { problems, requests };
}

// build/report.js FOLDER: checks the pages of build/report in Chromium, and stores pictures in that folder.
"use strict";
const fs = require("fs");
const path = require("path");
const puppeteer = require("puppeteer-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const SCREENS = { phone: [390, 844], narrow: [320, 640], desk: [1280, 900] };
const folder = process.argv[2];
const findings = [];
let checked = 0;

async function check(browser, name, theme, screen) {
  const page = await browser.newPage();
  const [width, height] = SCREENS[screen];
  const what = `${name}, ${theme}, ${screen}`;
  await page.setViewport({ width, height, deviceScaleFactor: 1 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  page.on("console", (message) => findings.push(`${what}: console: ${message.text()}`));
  page.on("pageerror", (error) => findings.push(`${what}: ${error}`));
  const url = `file://${path.join(folder, name)}`;
  page.on("request", (request) => {
    if (![url, "data:,"].includes(request.url())) findings.push(`${what}: request: ${request.url()}`);
  });
  await page.goto(url, { waitUntil: "networkidle0" });
  const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (excess > 0) findings.push(`${what}: ${excess} pixels wider than the screen`);
  const isDark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)");
  if (isDark !== (theme === "dark")) findings.push(`${what}: wrong background`);
  // axe takes minutes for the page of 1,000 OSDs, which has the same elements.
  if (name === "few.html") {
    await page.evaluate(axe);
    const result = await page.evaluate(() => axe.run(document));
    checked += result.passes.length;
    if (!result.passes.some((rule) => rule.id === "color-contrast")) findings.push(`${what}: contrast not checked`);
    for (const rule of result.violations) {
      findings.push(`${what}: axe: ${rule.impact}: ${rule.id}: ${rule.nodes.map((node) => node.html).join("; ")}`);
    }
  }
  const picture = path.join(folder, `${path.parse(name).name}-${screen}-${theme}.png`);
  await page.screenshot({ path: picture, fullPage: name === "few.html" });
  if (screen === "desk" && theme === "dark") {
    // A page that is dark on the screen is printed in dark ink on white.
    await page.emulateMediaType("print");
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    if (paper !== "rgb(255, 255, 255)") findings.push(`${what}: paper is ${paper}`);
    await page.setViewport({ width: 718, height: 1000 });
    await page.screenshot({ path: path.join(folder, `${path.parse(name).name}-print.png`), fullPage: name === "few.html" });
    await page.pdf({ path: path.join(folder, `${path.parse(name).name}.pdf`), format: "A4", margin: { top: "15mm", bottom: "15mm", left: "15mm", right: "15mm" } });
  }
  await page.close();
}

async function main() {
  const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  try {
    for (const name of ["few.html", "many.html"]) {
      for (const theme of ["light", "dark"]) {
        for (const screen of Object.keys(SCREENS)) await check(browser, name, theme, screen);
      }
    }
  } finally {
    await browser.close();
  }
  findings.forEach((finding) => console.error(finding));
  console.log(`remark: 12 views, ${checked} rules of axe-core passed, ${findings.length} findings`);
  process.exitCode = findings.length ? 1 : 0;
}

main();

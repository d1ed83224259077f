# Every target is one line; the work is in build/ and tests/lab/.
.PHONY: help demo test check build lab-up lab-down lab-full
MAKEFLAGS += --no-print-directory

help:
	@echo 'make demo      everything, on a fresh Debian 12 machine, as root'
	@echo 'make test      every test; installs what it needs; as root on Debian 12'
	@echo 'make check     formatting, lints, the hermetic tests without the searches: a minute or two'
	@echo 'make build     the binary for Ceph'"'"'s images (glibc 2.28)'
	@echo 'make lab-up    real Ceph on real Kubernetes, on this machine (tests/lab/lab help)'
	@echo 'make lab-down  end and remove it'
	@echo 'make lab-full  the demo, then the lab'"'"'s tests alone: killed with five seeds, all of frozen'
	@echo 'One stage alone: build/stages NAME'

demo:
	@build/demo

test:
	@build/stages install fmt test-build // lab // tests clippy advisories shell chart binary glibc

check:
	@build/stages fmt clippy quick

build:
	@build/stages released glibc-released

lab-up:
	@tests/lab/lab up

lab-down:
	@tests/lab/lab down

lab-full:
	@build/stages explore-full test-build released glibc-released image demo lab-full
